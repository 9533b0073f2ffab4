// sessions WHAT [ARGUMENT]: sessions that begin after the last one has ended. Rank 0 prints "WHAT: right".
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kLong = 300000, kThreads = 4, kTurns = 10, kShort = 20000, kBytes = 1024 };

static int me = -1;

#define must(what)                                           \
  do {                                                       \
    if (!(what)) {                                           \
      printf("rank %d: line %d: %s\n", me, __LINE__, #what); \
      fflush(stdout);                                        \
      _exit(1);                                              \
    }                                                        \
  } while (0)

static MPI_Session begin(void) {
  MPI_Session session;
  must(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session) == MPI_SUCCESS);
  return session;
}

// Of the first `count` processes, or all of them with 0. The others get none.
static MPI_Comm comm_of(MPI_Session session, const char* set, int count, const char* name) {
  MPI_Group all, some;
  MPI_Comm comm = MPI_COMM_NULL;
  int rank;
  MPI_Group_from_session_pset(session, set, &all);
  MPI_Group_rank(all, &rank);
  if (count == 0) MPI_Group_size(all, &count);
  int range[1][3] = {{0, count - 1, 1}};
  MPI_Group_range_incl(all, 1, range, &some);
  if (rank < count) MPI_Comm_create_from_group(some, name, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  MPI_Group_free(&some);
  MPI_Group_free(&all);
  if (strcmp(set, "mpi://WORLD") == 0) me = rank;
  return comm;
}

// A sum, a message in a ring and a window, whose values differ from turn to turn.
static void work(MPI_Comm comm, int turn) {
  static int to[kLong], from[kLong];
  int rank, size, sum = 0, mine = turn, *shown;
  MPI_Win window;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int one = rank + turn, right = (rank + 1) % size, left = (rank + size - 1) % size;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  must(sum == size * (size - 1) / 2 + size * turn);
  const int count = turn % 3 == 0 ? 1 : turn % 3 == 1 ? 5000 : kLong;
  for (int i = 0; i < count; ++i) to[i] = rank * 7 + turn + i;
  MPI_Sendrecv(to, count, MPI_INT, right, turn, from, count, MPI_INT, left, turn, comm, MPI_STATUS_IGNORE);
  for (int i = 0; i < count; ++i) must(from[i] == left * 7 + turn + i);
  MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &shown, &window);
  *shown = -1;
  MPI_Win_fence(0, window);
  MPI_Put(&mine, 1, MPI_INT, right, 0, 1, MPI_INT, window);
  MPI_Win_fence(0, window);
  must(*shown == turn);
  MPI_Win_free(&window);
}

static void again(int turns) {
  for (int turn = 0; turn < turns; ++turn) {
    MPI_Session session = begin();
    MPI_Comm comm = comm_of(session, "mpi://WORLD", 0, "again");
    work(comm, turn);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
  }
}

// In every other turn half of the processes have a session, alone or together; the others have none, or ended before.
static void some(int turns) {
  int size = 0;
  for (int turn = 0; turn < turns; ++turn) {
    if (turn % 2 != 0 && me >= (size + 1) / 2 && me % 2 == 0) continue;
    MPI_Session session = begin();
    MPI_Comm own = comm_of(session, "mpi://SELF", 0, "own");
    MPI_Comm comm = comm_of(session, "mpi://WORLD", turn % 2 == 0 ? 0 : (size + 1) / 2, "some");
    if (turn == 0) MPI_Comm_size(comm, &size);
    work(own, turn);
    if (comm != MPI_COMM_NULL) {
      work(comm, turn);
      MPI_Comm_free(&comm);
    }
    MPI_Comm_free(&own);
    MPI_Session_finalize(&session);
  }
}

// More messages than there is room for, whose requests rank 0 frees. It ends its session, and does nothing for MPI
// until rank 1 has them all.
static void late(const char* marks) {
  static char data[kShort][kBytes];
  char sends[4096], has[4096];
  snprintf(sends, sizeof sends, "%s/sends", marks);
  snprintf(has, sizeof has, "%s/has", marks);
  MPI_Session session = begin();
  MPI_Comm comm = comm_of(session, "mpi://WORLD", 0, "late");
  MPI_Request request;
  if (me == 0) {
    for (int i = 0; i < kShort; ++i) {
      memset(data[i], i % 100, kBytes);
      MPI_Isend(data[i], kBytes, MPI_BYTE, 1, 1, comm, &request);
      MPI_Request_free(&request);
    }
    fclose(fopen(sends, "w"));
  } else {
    while (access(sends, F_OK) != 0) usleep(1000);
    for (int i = 0; i < kShort; ++i) {
      MPI_Recv(data[0], kBytes, MPI_BYTE, 0, 1, comm, MPI_STATUS_IGNORE);
      must(data[0][0] == i % 100 && data[0][kBytes - 1] == i % 100);
    }
    fclose(fopen(has, "w"));
  }
  MPI_Comm_free(&comm);
  MPI_Session_finalize(&session);
  while (me == 0 && access(has, F_OK) != 0) usleep(1000);
}

static void world(int argc, char** argv) {
  int flag;
  again(2);
  MPI_Initialized(&flag);
  must(!flag);
  MPI_Init(&argc, &argv);
  MPI_Initialized(&flag);
  must(flag);
  work(MPI_COMM_WORLD, 1);
  MPI_Session session = begin();
  MPI_Finalize();
  MPI_Finalized(&flag);
  must(flag);
  MPI_Comm comm = comm_of(session, "mpi://WORLD", 0, "behind");
  work(comm, 2);
  MPI_Comm_free(&comm);
  MPI_Session_finalize(&session);
  again(3);
}

static int called;
static void handler(MPI_Session* session, int* error, ...) {
  if (*session == MPI_SESSION_NULL && *error != MPI_SUCCESS) called += 1;
  if (*session != MPI_SESSION_NULL && *error != MPI_SUCCESS) called += 100;
}

// An error handler is there before the first session. After MPI_Finalize there is no way back: an error for the handler
// that the session would have had.
static void ended(int argc, char** argv) {
  MPI_Session session;
  MPI_Errhandler own, unused;
  MPI_Group group;
  char text[MPI_MAX_ERROR_STRING];
  int length;
  MPI_Session_create_errhandler(handler, &unused);
  MPI_Session_create_errhandler(handler, &own);
  MPI_Errhandler_free(&unused);
  must(MPI_Session_init(MPI_INFO_NULL, own, &session) == MPI_SUCCESS);
  must(MPI_Group_from_session_pset(session, "mpi://nobody", &group) != MPI_SUCCESS);
  MPI_Session_finalize(&session);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Finalize();
  for (int i = 0; i < 2; ++i) {
    const int error = MPI_Session_init(MPI_INFO_NULL, i == 0 ? MPI_ERRORS_RETURN : own, &session);
    must(error != MPI_SUCCESS && session == MPI_SESSION_NULL);
    MPI_Error_string(error, text, &length);
    must(strstr(text, "ended in this process with MPI_Finalize") != NULL);
  }
  must(called == 101);
  MPI_Errhandler_free(&own);
}

static void* of_thread(void* number) {
  char name[20];
  snprintf(name, sizeof name, "thread %d", *(int*)number);
  for (int turn = 0; turn < kTurns; ++turn) {
    MPI_Session session = begin();
    MPI_Comm own = comm_of(session, "mpi://SELF", 0, name);
    int rank = -1, one = turn, sum = 0;
    MPI_Comm_rank(own, &rank);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, own);
    must(rank == 0 && sum == turn);
    MPI_Comm_free(&own);
    MPI_Session_finalize(&session);
  }
  return NULL;
}

static void threads(void) {
  pthread_t thread[kThreads];
  int number[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    number[i] = i;
    pthread_create(&thread[i], NULL, of_thread, &number[i]);
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(thread[i], NULL);
  again(1);
}

// A child that ends while no session is there does not end MPI for its parent.
static void forked(void) {
  int status = -1;
  again(2);
  const pid_t child = fork();
  if (child == 0) exit(5);
  must(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 5);
  again(2);
}

// Processes that are spawned begin with a session, and find their parents with the world.
static void family(int argc, char** argv) {
  int number = 0;
  MPI_Comm parents, children;
  if (argc > 2) {
    MPI_Session session = begin();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_get_parent(&parents);
    must(parents != MPI_COMM_NULL);
    MPI_Bcast(&number, 1, MPI_INT, 0, parents);
    must(number == 17);
    MPI_Comm_disconnect(&parents);
    MPI_Session_finalize(&session);
  } else {
    char* arguments[] = {argv[1], "child", NULL};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_spawn(argv[0], arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    number = 17;
    MPI_Bcast(&number, 1, MPI_INT, me == 0 ? MPI_ROOT : MPI_PROC_NULL, children);
    MPI_Comm_disconnect(&children);
  }
  MPI_Finalize();
  if (argc > 2) me = -1;
}

// A call between sessions is an error that ends the job, also for those who wait in a session of theirs.
static void between(void) {
  MPI_Session session = begin();
  MPI_Comm comm = comm_of(session, "mpi://WORLD", 0, "between");
  work(comm, 0);
  if (me != 0) MPI_Recv(&me, 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE);
  MPI_Session_finalize(&session);
  MPI_Comm_size(comm, &me);
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "again") == 0) again(atoi(argv[2]));
  else if (strcmp(what, "some") == 0) some(atoi(argv[2]));
  else if (strcmp(what, "late") == 0) late(argv[2]);
  else if (strcmp(what, "world") == 0) world(argc, argv);
  else if (strcmp(what, "ended") == 0) ended(argc, argv);
  else if (strcmp(what, "threads") == 0) threads();
  else if (strcmp(what, "forked") == 0) forked();
  else if (strcmp(what, "family") == 0) family(argc, argv);
  else if (strcmp(what, "between") == 0) between();
  else return 2;
  if (me == 0) printf("%s: right\n", what);
  return 0;
}
