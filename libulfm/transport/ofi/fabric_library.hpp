// libfabric, opened when a job needs it and not before: it brings two dozen libraries along, and a job on one host
// should not pay for them at every start.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include <memory>
#include <string>

#include "base/error.hpp"
#include "transport/hosts/socket_address.hpp"

namespace ulfm::ofi {

using hosts::SocketAddress;

/// The few functions of libfabric that are not reached through its objects.
struct FabricLibrary {
  decltype(&::fi_getinfo) getinfo = nullptr;
  decltype(&::fi_freeinfo) freeinfo = nullptr;
  decltype(&::fi_dupinfo) dupinfo = nullptr;
  decltype(&::fi_fabric) fabric = nullptr;
  decltype(&::fi_strerror) strerror = nullptr;
  decltype(&::fi_version) version = nullptr;
};

/// Errc::unavailable when there is no libfabric of a version that can be used. The library stays open.
Result<const FabricLibrary*> fabric_library();

/// Closes an object of libfabric.
struct FidCloser {
  template <typename T>
  void operator()(T* object) const noexcept {
    fi_close(&object->fid);
  }
};
template <typename T>
using Fid = std::unique_ptr<T, FidCloser>;

struct InfoFreer {
  void operator()(fi_info* info) const noexcept;
};
using Info = std::unique_ptr<fi_info, InfoFreer>;

/// The address at which an endpoint made from this listens, and the one it connects to. Without memory there is no
/// address in it then.
void set_source(fi_info& info, const SocketAddress& address) noexcept;
void set_destination(fi_info& info, const SocketAddress& address) noexcept;

/// "Connection refused" for a negative return value.
std::string error_text(long rc);

}  // namespace ulfm::ofi
