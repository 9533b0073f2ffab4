/* Which MPI library a program runs with: rank 0 prints the line of MPI_Get_library_version, or of each
 * process when they differ. */
#include "example.h"

int main(int argc, char** argv) {
  const struct example e = example_start(&argc, &argv, "1", 1);
  char own[MPI_MAX_LIBRARY_VERSION_STRING] = "", first[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(own, &length);
  memcpy(first, own, sizeof first);
  MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
  const int differs = strcmp(own, first) != 0;
  if (e.rank == 0 || differs) printf("%s%s", own, length > 0 && own[length - 1] == '\n' ? "" : "\n");
  int any = 0;
  MPI_Reduce(&differs, &any, 1, MPI_INT, MPI_LOR, 0, MPI_COMM_WORLD);
  const int code = e.rank == 0 && e.check ? example_verdict(!any, "the same library in every process") : 0;
  MPI_Finalize();
  return code;
}
