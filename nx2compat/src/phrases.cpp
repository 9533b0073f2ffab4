#include "outcome.hpp"

namespace nx2 {

const char* phrase(int error) noexcept {
  switch (error) {
    case EQPBUF: return "Invalid buffer pointer";
    case EQBLEN: return "Buffer length exceeds allocation";
    case EQLEN: return "Invalid length";
    case EQTIME: return "Time limit exceeded";
    case EQMSGLONG: return "Received message too long for buffer";
    case EQPID: return "Invalid pid";
    case EQNODE: return "Invalid node";
    case EQTYPE: return "Invalid type";
    case EQMID: return "Invalid message id";
    case EQHND: return "Invalid handler type";
    case EQNOPROC: return "No such process";
    case EQUSEPID: return "Pid already in use";
    case EQNOACT: return "No active process";
    case EQPARAM: return "Invalid parameter";
    case EQPRIV: return "Privileged operation";
    case EQMEM: return "Not enough memory";
    case EQNOMID: return "Too many requests";
    case EQSET: return "Pid already set";
    case EQNOSET: return "No pid defined";
    case EQMSGSHORT: return "Received message too short for buffer";
    case 150: return "Internal driver error";
    default: return nullptr;
  }
}

}  // namespace nx2
