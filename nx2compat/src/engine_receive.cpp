#include <algorithm>
#include <cstring>

#include "engine.hpp"

namespace nx2 {

// ---- completing
// -----------------------------------------------------------------------------------------------------

static MessageInfo info_of(const Header& header, std::size_t count) {
  return {header.type, header.source, header.source_ptype, static_cast<long>(count)};
}

// pending has just become 0.
void NxEngine::complete(Request& request) {
  ++moved_;
  if (request.is_receive && request.info.place != nullptr) write_info(request.info, request.result);
  if (request.handler) {
    if (request.error != 0) end_of_job(request.is_receive ? "hrecv" : "hsend", request.error);
    calls_.push_back({request.handler, request.result});
    --handlers_pending_;
  }
  if (request.ignored) release_ignored(request);
  if (!request.pooled) return;
  pool_free_.push_back(&request);
}

Request& NxEngine::pooled_request() {
  if (pool_free_.empty()) pool_free_.push_back(&pool_.emplace_back());
  Request& request = *pool_free_.back();
  pool_free_.pop_back();
  request = Request{};
  request.pooled = true;
  return request;
}

bool NxEngine::run_handlers() {
  if (calls_.empty() || handlers_blocked || handler_runs_) return false;
  handler_runs_ = true;
  while (!calls_.empty() && !handlers_blocked) {
    const HandlerCall call = calls_.front();
    calls_.pop_front();
    call_handler(call.handler, call.info);
  }
  handler_runs_ = false;
  return true;
}

// ---- a short buffer has been emptied
// --------------------------------------------------------------------------------

void NxEngine::return_buffer(std::int32_t node, std::int32_t type) {
  if (type >= kFirstSystemType) return;  // it came without
  Peer& peer = peers_[static_cast<std::size_t>(node)];
  // While some stay here for lack of memory, the others must go back at once: they may be all its sender has
  // left.
  const std::uint32_t batch = peer.kept != 0 ? 1 : tuning_.buffers / 2;
  if (++peer.owed >= batch && !peer.left) control(node, Kind::buffers);
}

// ---- messages that came and are not asked for yet
// -------------------------------------------------------------------

Request* NxEngine::find_posted(const Header& header) {
  if (!is_mine(header)) return nullptr;
  for (Request* r = posted_.first(); r != nullptr; r = posted_.next(*r))
    if (r->selector.selects(header.type, header.source, header.source_ptype)) return r;
  return nullptr;
}

Arrived* NxEngine::find_arrived(const Selector& selector) {
  for (Arrived* a = arrived_.first(); a != nullptr; a = arrived_.next(*a))
    if ((a->ptype == ptype || a->ptype == kAny) && selector.selects(a->type, a->source, a->source_ptype)) return a;
  return nullptr;
}

Arrived& NxEngine::add_arrived(const Header& header, std::size_t count) {
  auto* arrived = new (std::nothrow) Arrived;
  if (arrived == nullptr) end_of_job("crecv", EQMEM);
  arrived->type = header.type;
  arrived->source = header.source;
  arrived->source_ptype = header.source_ptype;
  arrived->ptype = header.ptype;
  arrived->count = count;
  arrived->sequence = sequence_++;
  arrived_.push_back(*arrived);
  return *arrived;
}

void NxEngine::drop_arrived(Arrived& arrived) {
  if (arrived.bytes) memory_ -= arrived.count;
  if (arrived.keeps_buffer) {
    // It was reset when another program was loaded at that place since.
    if (auto& kept = peers_[static_cast<std::size_t>(arrived.source)].kept; kept != 0) --kept;
    return_buffer(arrived.source, arrived.type);
  }
  arrived.unlink();
  delete &arrived;
}

void NxEngine::deliver(Request& request, const Header& header, const std::byte* data, std::size_t size) {
  request.unlink();
  request.result = info_of(header, size);
  request.sequence = sequence_++;
  if (size > request.capacity) request.error = EQMSGLONG;
  if (const std::size_t fits = std::min(size, request.capacity); fits != 0) std::memcpy(request.buffer, data, fits);
  request.pending = 0;
  complete(request);
}

void NxEngine::take_message(const Header& header, const std::byte* data, std::size_t size) {
  const bool from_self = header.source == channel_.self();
  if (Request* request = find_posted(header)) {
    deliver(*request, header, data, size);
  } else if (!closing_) {
    Arrived& arrived = add_arrived(header, size);
    arrived.bytes = allocate(size);
    if (!arrived.bytes) end_of_job("crecv", EQMEM);
    if (size != 0) std::memcpy(arrived.bytes.get(), data, size);
    memory_ += size;
    ++moved_;
    arrived.keeps_buffer = !from_self && memory_ > tuning_.memory && header.type < kFirstSystemType;
    if (arrived.keeps_buffer) {
      ++peers_[header.source].kept;
      return;
    }
  }
  if (!from_self) return_buffer(header.source, header.type);
}

// ---- long messages
// --------------------------------------------------------------------------------------------------

Incoming& NxEngine::new_incoming(std::int32_t source, std::uint32_t sender_id, std::size_t count) {
  if (incoming_free_.empty()) {
    incoming_free_.push_back(static_cast<std::uint32_t>(incoming_.size()));
    incoming_.emplace_back().id = incoming_free_.back();
  }
  Incoming& incoming = incoming_[incoming_free_.back()];
  incoming_free_.pop_back();
  const std::uint32_t id = incoming.id;
  incoming = Incoming{};
  incoming.id = id;
  incoming.source = source;
  incoming.sender_id = sender_id;
  incoming.count = count;
  incoming.in_use = true;
  control(source, Kind::request, sender_id, number_of(id));
  return incoming;
}

void NxEngine::end_incoming(Incoming& incoming) {
  incoming.in_use = false;
  incoming_free_.push_back(incoming.id);
}

// Into memory of the system, if there is enough (Pierce, section 3.2: "or there are enough free pages").
bool NxEngine::ask_for(Arrived& arrived) {
  if (memory_ + arrived.count > tuning_.memory) return false;
  arrived.bytes = allocate(arrived.count);
  if (!arrived.bytes) return false;
  memory_ += arrived.count;
  Incoming& incoming = new_incoming(arrived.source, arrived.sender_id, arrived.count);
  incoming.to = arrived.bytes.get();
  incoming.arrived = &arrived;
  arrived.incoming = &incoming;
  arrived.state = Arrived::State::coming;
  return true;
}

void NxEngine::take_proxy(const Header& header, const ProxyBody& body) {
  return_buffer(header.source, header.type);
  if (closing_) return control(header.source, Kind::refuse, body.id);
  Request* request = find_posted(header);
  if (request == nullptr) {
    Arrived& arrived = add_arrived(header, body.count);
    arrived.state = Arrived::State::proxy;
    arrived.sender_id = body.id;
    ask_for(arrived);
    ++moved_;
    return;
  }
  if (body.count > request->capacity) {
    control(header.source, Kind::refuse, body.id);
    request->unlink();
    request->result = info_of(header, body.count);
    request->error = EQMSGLONG;
    request->pending = 0;
    return complete(*request);
  }
  request->unlink();
  request->result = info_of(header, body.count);
  request->sequence = sequence_++;
  Incoming& incoming = new_incoming(header.source, body.id, body.count);
  incoming.to = request->buffer;
  incoming.request = request;
  request->incoming = &incoming;
}

void NxEngine::take_data(const Header& header, const std::byte* data, std::size_t size) {
  return_buffer(header.source, 0);
  const std::size_t index = index_of(header.type);
  if (index >= incoming_.size()) return;
  Incoming& incoming = incoming_[index];
  if (!incoming.in_use || incoming.source != header.source || size > incoming.count - incoming.received) return;
  if (incoming.to != nullptr) std::memcpy(incoming.to + incoming.received, data, size);
  incoming.received += size;
  ++moved_;
  if (incoming.received < incoming.count) return;
  Request* request = incoming.request;
  Arrived* arrived = incoming.arrived;
  end_incoming(incoming);
  if (request != nullptr) {
    request->incoming = nullptr;
    request->pending = 0;
    complete(*request);
  } else if (arrived != nullptr) {
    arrived->state = Arrived::State::whole;
    arrived->incoming = nullptr;
    if (Request* taker = arrived->taker) receive_arrived(*taker, *arrived);
  }
}

Outgoing* NxEngine::outgoing_of(const Header& header) {
  const std::size_t index = index_of(header.type);
  if (index >= outgoing_.size() || !outgoing_[index].in_use || outgoing_[index].node != header.source) return nullptr;
  return &outgoing_[index];
}

void NxEngine::take_request(const Header& header) {
  Outgoing* outgoing = outgoing_of(header);
  if (outgoing == nullptr || outgoing->asked_for) return;
  outgoing->asked_for = true;
  outgoing->receiver_id = static_cast<std::uint32_t>(header.source_ptype);
  streams_.push_back(*outgoing);
  ++moved_;
}

void NxEngine::take_refusal(const Header& header) {
  if (Outgoing* outgoing = outgoing_of(header)) end_outgoing(*outgoing);
}

// ---- what came through the port
// -------------------------------------------------------------------------------------

// False when it is no message of a node.
bool NxEngine::open(const ulfm_message& message, Opened& opened) {
  Header& header = opened.header;
  if (message.size < sizeof header) return false;
  std::memcpy(&header, message.bytes, sizeof header);
  if (header.source >= channel_.places()) return false;
  Peer& peer = peers_[header.source];
  // The message may be of a program that was loaded there since, whose buffers are counted anew.
  if (peer.left || peer.use != channel_.loads(header.source)) (void)reach(header.source);
  peer.contacted = true;
  peer.buffers = std::min(peer.buffers + header.buffers, tuning_.buffers);
  const auto kind = static_cast<std::uint8_t>(header.kind);
  const std::size_t begin = (kind & kApart) != 0 ? sizeof(ApartHeader) : sizeof header;
  if (message.size < begin) return false;
  header.kind = static_cast<Kind>(kind & ~kApart);
  opened.data = static_cast<const std::byte*>(message.bytes) + begin;
  opened.size = message.size - begin;
  return true;
}

void NxEngine::take(const Opened& opened) {
  const auto& [header, data, size] = opened;
  switch (header.kind) {
    case Kind::message: return take_message(header, data, size);
    case Kind::data: return take_data(header, data, size);
    case Kind::request: return take_request(header);
    case Kind::refuse: return take_refusal(header);
    case Kind::bye:
      // Another program may have been loaded there since.
      if (static_cast<std::uint32_t>(header.type) == channel_.loads(header.source)) abandon(header.source);
      return;
    case Kind::kill: killed_ = true; return;
    case Kind::proxy:
      if (ProxyBody body; size == sizeof body) {
        std::memcpy(&body, data, sizeof body);
        take_proxy(header, body);
      }
      return;
    case Kind::entry:
      if (EntryBody image; size == sizeof image) {
        std::memcpy(&image, data, sizeof image);
        take_entry(header, image);
      }
      return;
    case Kind::buffers:
    case Kind::ping: return;
  }
}

void NxEngine::dispatch(const ulfm_message& message) {
  if (Opened opened; open(message, opened)) take(opened);
}

bool NxEngine::open_next(Opened& opened) {
  const ulfm_message* message = channel_.wait(-1);
  return message != nullptr && open(*message, opened);
}

bool NxEngine::is_in_the_way(const Selector& selector) {
  if (busy() || handlers_pending_ != 0 || !calls_.empty() || housekeeping) return true;
  return !arrived_.empty() && find_arrived(selector) != nullptr;
}

bool NxEngine::is_asked_for(const Opened& opened, const Selector& selector, std::size_t capacity) {
  const Header& header = opened.header;
  return header.kind == Kind::message && opened.size <= capacity && is_mine(header) &&
         selector.selects(header.type, header.source, header.source_ptype) &&
         (posted_.empty() || find_posted(header) == nullptr);
}

void NxEngine::receive_opened(const Opened& opened, std::byte* buffer, MessageInfo& result) {
  if (opened.size != 0) std::memcpy(buffer, opened.data, opened.size);
  result = info_of(opened.header, opened.size);
  ++moved_;
  return_buffer(opened.header.source, opened.header.type);
  settle();
}

// ---- the program's side
// ---------------------------------------------------------------------------------------------

// `arrived` is not in arrived_ any more when a receive takes it.
void NxEngine::receive_arrived(Request& request, Arrived& arrived) {
  request.unlink();
  const Header header{
      static_cast<std::uint16_t>(arrived.source), Kind::message, 0, arrived.type, arrived.source_ptype, arrived.ptype};
  request.sequence = arrived.sequence;
  if (arrived.state == Arrived::State::whole) {
    const std::uint64_t sequence = arrived.sequence;
    const Bytes bytes = std::move(arrived.bytes);
    memory_ -= arrived.count;
    const std::size_t count = arrived.count;
    drop_arrived(arrived);
    deliver(request, header, bytes.get(), count);
    request.sequence = sequence;
    return;
  }
  request.result = info_of(header, arrived.count);
  if (arrived.count > request.capacity) {
    if (arrived.state == Arrived::State::proxy) control(arrived.source, Kind::refuse, arrived.sender_id);
    else arrived.incoming->arrived = nullptr, arrived.incoming->to = nullptr;
    drop_arrived(arrived);
    request.error = EQMSGLONG;
    request.pending = 0;
    return complete(request);
  }
  if (arrived.state == Arrived::State::coming) {
    arrived.unlink();
    taken_.push_back(arrived);
    arrived.taker = &request;
    return;
  }
  Incoming& incoming = new_incoming(arrived.source, arrived.sender_id, arrived.count);
  incoming.to = request.buffer;
  incoming.request = &request;
  request.incoming = &incoming;
  drop_arrived(arrived);
}

void NxEngine::post_receive(Request& request) {
  request.is_receive = true;
  request.pending = 1;
  if (Arrived* arrived = find_arrived(request.selector)) return receive_arrived(request, *arrived);
  posted_.push_back(request);
}

bool NxEngine::find(const Selector& selector, MessageInfo& info) {
  const Arrived* arrived = find_arrived(selector);
  if (arrived == nullptr) return false;
  info = {arrived->type, arrived->source, arrived->source_ptype, static_cast<long>(arrived->count)};
  return true;
}

void NxEngine::flush(const Selector& selector) {
  while (Arrived* arrived = find_arrived(selector)) {
    if (arrived->state == Arrived::State::proxy) control(arrived->source, Kind::refuse, arrived->sender_id);
    if (arrived->incoming != nullptr) arrived->incoming->arrived = nullptr, arrived->incoming->to = nullptr;
    drop_arrived(*arrived);
  }
}

// The message that this receive took goes back to its place among those that wait.
void NxEngine::put_back(Request& request, Bytes bytes) {
  auto* arrived = new (std::nothrow) Arrived;
  if (arrived == nullptr) end_of_job("msgcancel", EQMEM);
  arrived->type = request.result.type;
  arrived->source = request.result.node;
  arrived->source_ptype = request.result.ptype;
  arrived->ptype = kAny;
  arrived->count = static_cast<std::size_t>(request.result.count);
  arrived->sequence = request.sequence;
  arrived->bytes = std::move(bytes);
  memory_ += arrived->count;
  if (Incoming* incoming = std::exchange(request.incoming, nullptr)) {
    arrived->state = Arrived::State::coming;
    arrived->incoming = incoming;
    incoming->request = nullptr;
    incoming->arrived = arrived;
    incoming->to = arrived->bytes.get();
  }
  Arrived* later = arrived_.first();
  while (later != nullptr && later->sequence < arrived->sequence) later = arrived_.next(*later);
  arrived_.push_before(*arrived, later);
}

void NxEngine::cancel_receive(Request& request) {
  if (request.linked()) return request.unlink();
  for (Arrived* a = taken_.first(); a != nullptr; a = taken_.next(*a)) {
    if (a->taker != &request) continue;
    a->unlink();
    a->taker = nullptr;
    Arrived* later = arrived_.first();
    while (later != nullptr && later->sequence < a->sequence) later = arrived_.next(*later);
    return arrived_.push_before(*a, later);
  }
  if (request.error != 0) return;
  const auto count = static_cast<std::size_t>(request.result.count);
  Bytes bytes = allocate(count);
  if (!bytes) end_of_job("msgcancel", EQMEM);
  const std::size_t here = request.incoming != nullptr ? request.incoming->received : count;
  if (here != 0) std::memcpy(bytes.get(), request.buffer, here);
  put_back(request, std::move(bytes));
}

}  // namespace nx2
