// Errors are part of the public interface; the layers use the same type.
#pragma once

#include <ulfm/error.hpp>
