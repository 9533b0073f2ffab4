/* reductions SIZE: MPI_Reduce_local of so many bytes, for each operation and type below: how many GB of operand it
 * takes
 * in a second, the median of batches. Lines "operation type GB/s". Rank 0 tells. */
#include "bench.h"

enum { kBatches = 7 };

typedef struct {
  const char* name;
  MPI_Datatype type;
} Type;
typedef struct {
  const char* name;
  MPI_Op op;
  int from, to; /* types */
} Op;

static double speed(const void* in, void* inout, size_t bytes, int count, MPI_Datatype type, MPI_Op op) {
  const int calls = (int)((size_t)64 * 1024 * 1024 / bytes) + 1;
  const double start = MPI_Wtime();
  for (int i = 0; i < calls; ++i) MPI_Reduce_local(in, inout, count, type, op);
  return (double)bytes * calls / (MPI_Wtime() - start) / 1e9;
}

int main(int argc, char** argv) {
  int rank;
  bench_pin();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const Type types[] = {{"char", MPI_SIGNED_CHAR},
                        {"short", MPI_SHORT},
                        {"int", MPI_INT},
                        {"int64", MPI_INT64_T},
                        {"float", MPI_FLOAT},
                        {"double", MPI_DOUBLE},
                        {"dcomplex", MPI_C_DOUBLE_COMPLEX},
                        {"ldouble", MPI_LONG_DOUBLE}};
  const Op ops[] = {{"sum", MPI_SUM, 0, 8},   {"prod", MPI_PROD, 0, 8}, {"max", MPI_MAX, 0, 6},  {"min", MPI_MIN, 0, 6},
                    {"land", MPI_LAND, 0, 4}, {"band", MPI_BAND, 0, 4}, {"lxor", MPI_LXOR, 0, 4}};
  const size_t bytes = bench_number(argc > 1 ? argv[1] : "64K");
  char *in = bench_buffer(bytes), *inout = bench_buffer(bytes);
  memset(in, 0, bytes); /* 0 in every type, so that no sum grows without end */
  memset(inout, 0, bytes);
  for (unsigned o = 0; o < sizeof ops / sizeof *ops; ++o)
    for (int t = ops[o].from; t < ops[o].to; ++t) {
      double batch[kBatches];
      int size;
      MPI_Type_size(types[t].type, &size);
      const int count = (int)(bytes / (size_t)size);
      speed(in, inout, bytes, count, types[t].type, ops[o].op);
      for (int i = 0; i < kBatches; ++i) batch[i] = speed(in, inout, bytes, count, types[t].type, ops[o].op);
      if (rank == 0) printf("%s %s %.4f\n", ops[o].name, types[t].name, bench_median(batch, kBatches));
    }
  MPI_Finalize();
  return 0;
}
