// Pictures in the forms that documents want, made from the SVG by librsvg's rsvg-convert.
#pragma once

#include <string>

#include "base/error.hpp"

namespace topo {

/// `form` is "png" or "pdf". Errors: Errc::unavailable when there is no rsvg-convert, Errc::system.
ulfm::Result<std::string> convert_picture(const std::string& svg, const std::string& form);

}  // namespace topo
