// Every call, once, for all languages: arguments checked, errors as NX's numbers. The catalogue is
// calls.table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "message.hpp"
#include "outcome.hpp"

namespace nx2 {

/// Combines its second argument into its first.
using Combiner = long (*)(void*, void*);

namespace calls {

using Number = std::int32_t;
using Text = const std::string&;

// calls_messages.cpp
Outcome csend(Number type, const void* buf, Number count, Number node, Number ptype);
Outcome crecv(Number typesel, void* buf, Number count);
Outcome csendrecv(Number type, const void* sbuf, Number scount, Number node, Number ptype, Number typesel, void* rbuf,
                  Number rcount);
Outcome isend(Number type, const void* buf, Number count, Number node, Number ptype);
Outcome irecv(Number typesel, void* buf, Number count);
Outcome isendrecv(Number type, const void* sbuf, Number scount, Number node, Number ptype, Number typesel, void* rbuf,
                  Number rcount);
Outcome hsend(Number type, const void* buf, Number count, Number node, Number ptype, Handler handler);
Outcome hrecv(Number typesel, void* buf, Number count, Handler handler);
Outcome hsendrecv(Number type, const void* sbuf, Number scount, Number node, Number ptype, Number typesel, void* rbuf,
                  Number rcount, Handler handler);
Outcome cprobe(Number typesel);
Outcome iprobe(Number typesel);
Outcome crecvx(Number typesel, void* buf, Number count, Number nodesel, Number ptypesel, InfoArray info);
Outcome irecvx(Number typesel, void* buf, Number count, Number nodesel, Number ptypesel, InfoArray info);
Outcome cprobex(Number typesel, Number nodesel, Number ptypesel, InfoArray info);
Outcome iprobex(Number typesel, Number nodesel, Number ptypesel, InfoArray info);
Outcome hrecvx(Number typesel, void* buf, Number count, Number nodesel, Number ptypesel, Handler handler, long hparam);
Outcome hsendx(Number type, const void* buf, Number count, Number node, Number ptype, Handler handler, long hparam);
Outcome gsendx(Number type, const void* buf, Number count, const long* nodes, Number nodecount);
Outcome gsendx(Number type, const void* buf, Number count, const std::int32_t* nodes, Number nodecount);
Outcome flushmsg(Number typesel, Number nodesel, Number ptypesel);

// calls_ids.cpp
Outcome msgwait(Number mid);
Outcome msgdone(Number mid);
Outcome msgcancel(Number mid);
Outcome msgignore(Number mid);
Outcome msgmerge(Number mid1, Number mid2);

// calls_process.cpp
Outcome infocount();
Outcome infonode();
Outcome infnode();
Outcome infotype();
Outcome infoptype();
Outcome infopid();
Outcome mynode();
Outcome numnodes();
Outcome myhost();
Outcome mypid();
Outcome myptype();
Outcome nodedim();
Outcome gray(Number n);
Outcome ginv(Number n);
Outcome setpid(Number pid);
Outcome setptype(Number ptype);
Outcome masktrap(Number state);
unsigned long mclock();
double dclock();
Outcome hwclock(void* time);
Outcome flick();
Outcome led(Number state);
Outcome killcube(Number node, Number pid);
Outcome killproc(Number node, Number pid);

// calls_global.cpp
Outcome gdsum(double* x, Number n, double* work);
Outcome gdprod(double* x, Number n, double* work);
Outcome gdhigh(double* x, Number n, double* work);
Outcome gdlow(double* x, Number n, double* work);
Outcome gssum(float* x, Number n, float* work);
Outcome gsprod(float* x, Number n, float* work);
Outcome gshigh(float* x, Number n, float* work);
Outcome gslow(float* x, Number n, float* work);
#define NX2_INTEGER_OPERATION(name)            \
  Outcome name(long* x, Number n, long* work); \
  Outcome name(std::int32_t* x, Number n, std::int32_t* work);
NX2_INTEGER_OPERATION(gisum)
NX2_INTEGER_OPERATION(giprod)
NX2_INTEGER_OPERATION(gihigh)
NX2_INTEGER_OPERATION(gilow)
NX2_INTEGER_OPERATION(giand)
NX2_INTEGER_OPERATION(gior)
NX2_INTEGER_OPERATION(gixor)
NX2_INTEGER_OPERATION(gland)
NX2_INTEGER_OPERATION(glor)
NX2_INTEGER_OPERATION(glxor)
#undef NX2_INTEGER_OPERATION
Outcome gcol(const void* x, Number xlen, void* y, Number ylen, long* ncnt);
Outcome gcol(const void* x, Number xlen, void* y, Number ylen, std::int32_t* ncnt);
Outcome gcolx(const void* x, const long* xlens, void* y);
Outcome gcolx(const void* x, const std::int32_t* xlens, void* y);
Outcome gopf(void* x, Number xlen, void* work, Combiner function);
Outcome gsync();
Outcome gopen(Text path, Number flags, Number iomode, Number mode);

// calls_host.cpp
Outcome getcube(Text cubename, Text cubetype, Text srmname, Number keep);
Outcome attachcube(Text cubename);
Outcome relcube(Text cubename);
Outcome load(Text filename, Number node, Number pid);
Outcome waitall(Number node, Number pid);
Outcome waitone(Number node, Number pid, long* cnode, long* cpid, long* ccode);
Outcome waitone(Number node, Number pid, std::int32_t* cnode, std::int32_t* cpid, std::int32_t* ccode);
Outcome newserver(Text cubename);
Outcome cubeinfo(void* info, Number count, Number global);

// calls_paragon.cpp
Outcome nx_initve(Text partition, Number size, Text account, void* argc, void* argv);
Outcome nx_nfork(const long* nodes, Number count, Number ptype, long* pids);
Outcome nx_nfork(const std::int32_t* nodes, Number count, Number ptype, std::int32_t* pids);
Outcome nx_load(const long* nodes, Number count, Number ptype, long* pids, Text path);
Outcome nx_load(const std::int32_t* nodes, Number count, Number ptype, std::int32_t* pids, Text path);
Outcome nx_loadve(const long* nodes, Number count, Number ptype, long* pids, Text path, void* argv, void* envp);
Outcome nx_loadve(const std::int32_t* nodes, Number count, Number ptype, std::int32_t* pids, Text path, void* argv,
                  void* envp);
Outcome nx_waitall();
Outcome nx_pri(Number group, Number priority);
Outcome nx_mkpart(Text partition, Number size, Number type);
Outcome nx_mkpart_rect(Text partition, Number rows, Number columns, Number type);
Outcome nx_mkpart_map(Text partition, Number count, const long* nodes, Number type);
Outcome nx_mkpart_map(Text partition, Number count, const std::int32_t* nodes, Number type);
Outcome nx_rmpart(Text partition, Number force, Number recursive);
Outcome nx_perror(Text text);
Outcome nx_app_nodes(void* nodes, long* count);
Outcome nx_app_nodes(void* nodes, std::int32_t* count);
Outcome nx_app_rect(long* rows, long* columns);
Outcome nx_app_rect(std::int32_t* rows, std::int32_t* columns);
Outcome mypart(long* rows, long* columns);
Outcome mypart(std::int32_t* rows, std::int32_t* columns);

}  // namespace calls
}  // namespace nx2
