/* What the two halves of the preloaded library know of each other. */
#ifndef ULFM_TIME_INSIDE_H
#define ULFM_TIME_INSIDE_H

/** Calls of MPI that this thread is in: what asks for the time there is no program. */
extern __thread int ulfm_time_inside_mpi;

#endif
