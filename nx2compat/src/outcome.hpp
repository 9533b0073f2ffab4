// What an NX call comes to: a value, or one of NX's error numbers.
//
// The numbers are those of the iPSC/2. They lie above every errno of the C library, so they are used as they
// are.
#pragma once

namespace nx2 {

enum Error : int {
  EQPBUF = 151,
  EQBLEN = 152,
  EQLEN = 153,
  EQTIME = 154,
  EQMSGLONG = 155,
  EQPID = 156,
  EQNODE = 157,
  EQTYPE = 158,
  EQMID = 159,
  EQHND = 160,
  EQNOPROC = 161,
  EQUSEPID = 162,
  EQNOACT = 163,
  EQPARAM = 165,
  EQPRIV = 170,
  EQMEM = 171,
  EQNOMID = 174,
  EQSET = 175,
  EQNOSET = 176,
  EQMSGSHORT = 202,
};

struct [[nodiscard]] Outcome {
  long value = 0;
  int error = 0;  ///< 0 when the call succeeded
};

inline Outcome failed(Error error) noexcept { return {-1, error}; }

/// NX's words for an error number; nullptr for a number that is not one of NX's.
const char* phrase(int error) noexcept;

/// What a plain form does with an error: prints "(node N, pid P) CALL: PHRASE" and ends the job.
[[noreturn]] void end_of_job(const char* call, int error) noexcept;

/// Ends all processes of a job that a launcher started, this one too; by itself this one alone.
[[noreturn]] void end_all(int status) noexcept;

}  // namespace nx2
