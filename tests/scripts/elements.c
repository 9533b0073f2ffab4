// elements SEED COUNT: MPI_Get_elements and MPI_Get_elements_x for drawn types within types, of which a part may have
// come, beside a count of their basic elements one by one. Prints "elements: right".
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kDepth = 3, kMost = 4, kBasics = 9, kElements = 4096 };

static const MPI_Datatype basics[kBasics] = {MPI_INT,        MPI_FLOAT, MPI_DOUBLE, MPI_LONG,     MPI_SHORT,
                                             MPI_DOUBLE_INT, MPI_CHAR,  MPI_2INT,   MPI_SHORT_INT};
static const int sizes[kBasics][2] = {{4, 0}, {4, 0}, {8, 0}, {8, 0}, {2, 0}, {8, 4}, {1, 0}, {4, 4}, {2, 4}};

// The sizes of a type's basic elements, in their order.
typedef struct {
  MPI_Datatype type;
  int count;
  char size[kElements];
} Drawn;

static int draw(int below) { return rand() % below; }

static void append(Drawn* to, const Drawn* from, int times) {
  for (int i = 0; i < times; ++i)
    for (int k = 0; k < from->count && to->count < kElements; ++k) to->size[to->count++] = from->size[k];
}

static void basic(Drawn* drawn) {
  const int which = draw(kBasics);
  drawn->type = basics[which];
  drawn->count = 0;
  for (int k = 0; k < 2 && sizes[which][k] != 0; ++k) drawn->size[drawn->count++] = (char)sizes[which][k];
}

static void make(Drawn* drawn, int depth);

static void make_struct(Drawn* drawn, int depth) {
  const int parts = 1 + draw(kMost);
  MPI_Datatype types[kMost];
  MPI_Aint places[kMost];
  int counts[kMost];
  static Drawn part[kDepth + 1];
  drawn->count = 0;
  for (int i = 0; i < parts; ++i) {
    make(&part[depth], depth - 1);
    types[i] = part[depth].type;
    counts[i] = draw(3);
    places[i] = (MPI_Aint)i << 20;
    append(drawn, &part[depth], counts[i]);
  }
  MPI_Type_create_struct(parts, counts, places, types, &drawn->type);
}

static void make_of_one(Drawn* drawn, int depth) {
  static Drawn inner[kDepth + 1];
  Drawn* of = &inner[depth];
  make(of, depth - 1);
  const int n = 1 + draw(3), block = 1 + draw(3);
  int lengths[3], places[3], whole[2] = {4, 3}, part[2] = {1 + draw(4), 1 + draw(3)}, from[2] = {0, 0},
                             times = n * block;
  switch (draw(6)) {
    case 0: MPI_Type_contiguous(times, of->type, &drawn->type); break;
    case 1: MPI_Type_vector(n, block, block + 2, of->type, &drawn->type); break;
    case 2: MPI_Type_create_hvector(n, block, 1 << 24, of->type, &drawn->type); break;
    case 3:
      times = 0;
      for (int i = 0; i < n; ++i) {
        lengths[i] = draw(3);
        places[i] = 4 * i;
        times += lengths[i];
      }
      MPI_Type_indexed(n, lengths, places, of->type, &drawn->type);
      break;
    case 4:
      MPI_Type_create_subarray(2, whole, part, from, MPI_ORDER_C, of->type, &drawn->type);
      times = part[0] * part[1];
      break;
    default: MPI_Type_create_resized(of->type, 0, 1 << 22, &drawn->type), times = 1;
  }
  drawn->count = 0;
  append(drawn, of, times);
}

static void make(Drawn* drawn, int depth) {
  if (depth <= 0 || draw(4) == 0) basic(drawn);
  else if (draw(2) == 0) make_struct(drawn, depth);
  else make_of_one(drawn, depth);
}

// Where `bytes` of any number of them have come, and no basic element in part.
static int compare(const Drawn* drawn, long bytes, long expected) {
  MPI_Status status;
  MPI_Count long_count = -2;
  int count = -2;
  MPI_Status_set_elements_x(&status, MPI_BYTE, bytes);
  MPI_Get_elements(&status, drawn->type, &count);
  MPI_Get_elements_x(&status, drawn->type, &long_count);
  if (count == expected && long_count == expected) return 0;
  printf("%ld bytes: %d and %ld elements, and not %ld\n", bytes, count, (long)long_count, expected);
  return 1;
}

int main(int argc, char** argv) {
  static Drawn drawn;
  int wrong = 0;
  MPI_Init(&argc, &argv);
  srand((unsigned)atoi(argv[1]));
  for (int i = 0; i < atoi(argv[2]) && !wrong; ++i) {
    do make_struct(&drawn, kDepth);
    while (drawn.count == 0 || drawn.count == kElements);
    MPI_Type_commit(&drawn.type);
    long bytes = 0;
    const int all = drawn.count * 3;
    for (int k = 0; k <= all && !wrong; ++k) {
      if (k < 2 * drawn.count || draw(4) == 0) wrong = compare(&drawn, bytes, k);
      bytes += drawn.size[k % drawn.count];
    }
  }
  if (!wrong) puts("elements: right");
  MPI_Finalize();
  return wrong;
}
