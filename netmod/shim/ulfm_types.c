/* Packs and unpacks data with gaps by walking down MPICH's description of a type, its dataloops: loops within loops, of
 * which the innermost (a leaf) has rows of basic elements. MPICH's own walk is a state machine that can stop anywhere and
 * goes on from there; these calls begin anew, and a row costs them a copy of which the compiler knows the length. It is
 * the same walk for both directions. Compiled inside MPICH by an #include in typerep_dataloop_pack.c.
 *
 * Every loop has rows, at places of its own, of elements that are `el_extent` apart; an element of a leaf is a basic one,
 * of others what the loop below describes. `el_size` are the bytes of an element when it is packed. */
#include "dataloop_internal.h"

typedef const MPII_Dataloop loop_t;

#define TYPES_INLINE static inline __attribute__((always_inline))
/* Without a profile (decision 0015): the training takes few of these copies, and those that it does not take would be
 * compiled for size. */
#define TYPES_COPIES static __attribute__((noinline, no_profile_instrument_function))

/* ---- blocks of bytes ----------------------------------------------------------------------------------------------- */

TYPES_INLINE void types_move(char *data, char *packed, size_t bytes, int unpacks)
{
    if (unpacks)
        memcpy(data, packed, bytes);
    else
        memcpy(packed, data, bytes);
}

/* Longer blocks are the C library's to copy. */
#define TYPES_SHORT 256

/* Two moves of `half` bytes that meet or overlap; for at least `half` bytes and at most two of them. */
TYPES_INLINE void types_move_halves(char *data, char *packed, size_t bytes, size_t half, int unpacks)
{
    types_move(data, packed, half, unpacks);
    types_move(data + bytes - half, packed + bytes - half, half, unpacks);
}

/* So many bytes, of which the compiler knows nothing. */
TYPES_INLINE void types_move_any(char *data, char *packed, size_t bytes, int unpacks)
{
    if (bytes == 8)
        types_move(data, packed, 8, unpacks);
    else if (bytes == 4)
        types_move(data, packed, 4, unpacks);
    else if (bytes > TYPES_SHORT)
        types_move(data, packed, bytes, unpacks);
    else if (bytes >= 32) {
        for (; bytes > 64; bytes -= 32, data += 32, packed += 32)
            types_move(data, packed, 32, unpacks);
        types_move_halves(data, packed, bytes, 32, unpacks);
    } else if (bytes >= 16)
        types_move_halves(data, packed, bytes, 16, unpacks);
    else if (bytes >= 8)
        types_move_halves(data, packed, bytes, 8, unpacks);
    else if (bytes >= 4)
        types_move_halves(data, packed, bytes, 4, unpacks);
    else if (bytes >= 2)
        types_move_halves(data, packed, bytes, 2, unpacks);
    else if (bytes == 1)
        types_move(data, packed, 1, unpacks);
}

TYPES_INLINE void types_block(char *data, char *packed, size_t bytes, size_t known, int unpacks)
{
    if (known)
        types_move(data, packed, known, unpacks);
    else
        types_move_any(data, packed, bytes, unpacks);
}

/* The following copy the rows of a leaf, n times, `step` apart, and return where the packed data go on. These have one
 * length, which is `known` to the compiler, or 0, and are at `places`, or without those `stride` apart. */
TYPES_INLINE char *types_rows_of(char *data, MPI_Aint step, MPI_Aint n, const MPI_Aint * places, MPI_Aint stride,
                                 MPI_Aint rows, char *packed, size_t bytes, size_t known, int unpacks)
{
    const size_t length = known ? known : bytes;

    for (; n > 0; n--, data += step)
        for (MPI_Aint i = 0; i < rows; i++, packed += length)
            types_block(data + (places ? places[i] : i * stride), packed, length, known, unpacks);
    return packed;
}

/* The same with each length that is usual known to the compiler, which knows the direction too. */
TYPES_INLINE char *types_by_length(char *data, MPI_Aint step, MPI_Aint n, const MPI_Aint * places, MPI_Aint stride,
                                   MPI_Aint rows, char *packed, size_t bytes, int unpacks)
{
#define TYPES_KNOWN(known) \
    case known: \
        return types_rows_of(data, step, n, places, stride, rows, packed, bytes, known, unpacks)
    switch (bytes) {
        TYPES_KNOWN(1);
        TYPES_KNOWN(2);
        TYPES_KNOWN(4);
        TYPES_KNOWN(8);
        TYPES_KNOWN(12);
        TYPES_KNOWN(16);
        TYPES_KNOWN(24);
        TYPES_KNOWN(32);
        TYPES_KNOWN(64);
        default:
            return types_rows_of(data, step, n, places, stride, rows, packed, bytes, 0, unpacks);
    }
}

TYPES_COPIES char *types_even(char *data, MPI_Aint step, MPI_Aint n, MPI_Aint stride, MPI_Aint rows, char *packed,
                              size_t bytes, int unpacks)
{
    return unpacks ? types_by_length(data, step, n, NULL, stride, rows, packed, bytes, 1)
        : types_by_length(data, step, n, NULL, stride, rows, packed, bytes, 0);
}

/* The compiler may take it that there are places, and need not ask for each row. */
TYPES_COPIES __attribute__((nonnull(4)))
char *types_placed(char *data, MPI_Aint step, MPI_Aint n, const MPI_Aint * places, MPI_Aint rows, char *packed,
                   size_t bytes, int unpacks)
{
    return unpacks ? types_by_length(data, step, n, places, 0, rows, packed, bytes, 1)
        : types_by_length(data, step, n, places, 0, rows, packed, bytes, 0);
}

/* Rows at their own places, each of its own number of elements of `size` bytes. */
TYPES_INLINE char *types_uneven_rows(char *data, MPI_Aint step, MPI_Aint n, const MPI_Aint * places,
                                     const MPI_Aint * elements, MPI_Aint rows, char *packed, size_t size, int unpacks)
{
    for (; n > 0; n--, data += step)
        for (MPI_Aint i = 0; i < rows; i++) {
            const size_t bytes = elements[i] * size;
            types_move_any(data + places[i], packed, bytes, unpacks);
            packed += bytes;
        }
    return packed;
}

TYPES_COPIES char *types_uneven(char *data, MPI_Aint step, MPI_Aint n, const MPI_Aint * places,
                                const MPI_Aint * elements, MPI_Aint rows, char *packed, size_t size, int unpacks)
{
    return unpacks ? types_uneven_rows(data, step, n, places, elements, rows, packed, size, 1)
        : types_uneven_rows(data, step, n, places, elements, rows, packed, size, 0);
}

/* ---- loops --------------------------------------------------------------------------------------------------------- */

TYPES_INLINE int types_kind(loop_t * loop)
{
    return loop->kind & MPII_DATALOOP_KIND_MASK;
}

TYPES_INLINE int types_is_leaf(loop_t * loop)
{
    return (loop->kind & MPII_DATALOOP_FINAL_MASK) != 0;
}

TYPES_INLINE loop_t *types_below(loop_t * loop)
{
    return loop->loop_params.cm_t.dataloop;
}

/* How many rows it has. MPICH makes no loops of the kind STRUCT. */
TYPES_INLINE MPI_Aint types_count(loop_t * loop)
{
    return types_kind(loop) == MPII_DATALOOP_KIND_CONTIG ? 1 : loop->loop_params.count;
}

/* Where a row begins. */
TYPES_INLINE MPI_Aint types_place(loop_t * loop, MPI_Aint row)
{
    switch (types_kind(loop)) {
        case MPII_DATALOOP_KIND_VECTOR:
            return row * loop->loop_params.v_t.stride;
        case MPII_DATALOOP_KIND_BLOCKINDEXED:
            return loop->loop_params.bi_t.offset_array[row];
        case MPII_DATALOOP_KIND_INDEXED:
            return loop->loop_params.i_t.offset_array[row];
        default:
            return 0;
    }
}

/* How many elements are in it. */
TYPES_INLINE MPI_Aint types_elements(loop_t * loop, MPI_Aint row)
{
    switch (types_kind(loop)) {
        case MPII_DATALOOP_KIND_VECTOR:
            return loop->loop_params.v_t.blocksize;
        case MPII_DATALOOP_KIND_BLOCKINDEXED:
            return loop->loop_params.bi_t.blocksize;
        case MPII_DATALOOP_KIND_INDEXED:
            return loop->loop_params.i_t.blocksize_array[row];
        default:
            return loop->loop_params.c_t.count;
    }
}

static char *types_rows(loop_t * loop, char *data, MPI_Aint from, MPI_Aint to, char *packed, int unpacks);

/* n times, `step` apart, these whole rows of a leaf. */
static char *types_leaf(loop_t * loop, char *data, MPI_Aint step, MPI_Aint n, MPI_Aint from, MPI_Aint rows, char *packed,
                        int unpacks)
{
    const size_t bytes = types_elements(loop, from) * loop->el_size;

    switch (types_kind(loop)) {
        case MPII_DATALOOP_KIND_VECTOR:
            return types_even(data + types_place(loop, from), step, n, loop->loop_params.v_t.stride, rows, packed, bytes,
                              unpacks);
        case MPII_DATALOOP_KIND_BLOCKINDEXED:
            return types_placed(data, step, n, loop->loop_params.bi_t.offset_array + from, rows, packed, bytes, unpacks);
        case MPII_DATALOOP_KIND_INDEXED:
            return types_uneven(data, step, n, loop->loop_params.i_t.offset_array + from,
                                loop->loop_params.i_t.blocksize_array + from, rows, packed, loop->el_size, unpacks);
        default:
            return types_even(data, 0, 1, step, n, packed, bytes, unpacks);
    }
}

/* n times, `step` apart, what the loop describes. */
static char *types_repeat(loop_t * loop, char *data, MPI_Aint step, MPI_Aint n, char *packed, int unpacks)
{
    const MPI_Aint rows = types_count(loop);

    if (types_is_leaf(loop) && rows == 1) /* one block, of which there are n rows */
        return types_even(data + types_place(loop, 0), 0, 1, step, n, packed, types_elements(loop, 0) * loop->el_size,
                          unpacks);
    if (types_is_leaf(loop))
        return types_leaf(loop, data, step, n, 0, rows, packed, unpacks);
    if (rows == 1 && types_elements(loop, 0) == 1) /* what is below it, at another place */
        return types_repeat(types_below(loop), data + types_place(loop, 0), step, n, packed, unpacks);
    for (; n > 0; n--, data += step)
        packed = types_rows(loop, data, 0, rows, packed, unpacks);
    return packed;
}

/* Whole rows, from `from` to before `to`. */
static char *types_rows(loop_t * loop, char *data, MPI_Aint from, MPI_Aint to, char *packed, int unpacks)
{
    if (types_is_leaf(loop))
        return types_leaf(loop, data, 0, 1, from, to - from, packed, unpacks);
    if (types_kind(loop) == MPII_DATALOOP_KIND_VECTOR && loop->loop_params.v_t.blocksize == 1)
        return types_repeat(types_below(loop), data + types_place(loop, from), loop->loop_params.v_t.stride, to - from,
                            packed, unpacks);
    for (MPI_Aint row = from; row < to; row++)
        packed = types_repeat(types_below(loop), data + types_place(loop, row), loop->el_extent,
                              types_elements(loop, row), packed, unpacks);
    return packed;
}

/* ---- parts --------------------------------------------------------------------------------------------------------- */

static char *types_part(loop_t * loop, char *data, MPI_Aint first, MPI_Aint last, char *packed, int unpacks);

/* The bytes from `first` to before `last` of a row of such elements as `loop` describes, of `size` bytes each. */
static char *types_part_of_row(loop_t * loop, char *data, MPI_Aint size, MPI_Aint extent, MPI_Aint first, MPI_Aint last,
                               char *packed, int unpacks)
{
    MPI_Aint element = first / size, whole;

    first -= element * size;
    last -= element * size;
    data += element * extent;
    if (first > 0) {
        packed = types_part(loop, data, first, MPL_MIN(last, size), packed, unpacks);
        if (last <= size)
            return packed;
        data += extent;
        last -= size;
    }
    whole = last / size;
    if (whole > 0)
        packed = types_repeat(loop, data, extent, whole, packed, unpacks);
    if (last > whole * size)
        packed = types_part(loop, data + whole * extent, 0, last - whole * size, packed, unpacks);
    return packed;
}

/* The same of one row of the loop. Of a basic element all or nothing is unpacked: a part of it is left. */
static char *types_row_part(loop_t * loop, char *data, MPI_Aint row, MPI_Aint first, MPI_Aint last, char *packed,
                            int unpacks)
{
    data += types_place(loop, row);
    if (!types_is_leaf(loop))
        return types_part_of_row(types_below(loop), data, loop->el_size, loop->el_extent, first, last, packed, unpacks);
    if (unpacks)
        last -= last % loop->el_size;
    return last > first ? types_even(data + first, 0, 1, 0, 1, packed, last - first, unpacks) : packed;
}

/* How many whole rows from `row` on there are in so many bytes, and how many bytes these are. */
static MPI_Aint types_whole_rows(loop_t * loop, MPI_Aint row, MPI_Aint bytes, MPI_Aint * whole)
{
    MPI_Aint n = 0;

    *whole = 0;
    if (types_kind(loop) == MPII_DATALOOP_KIND_INDEXED) {
        const MPI_Aint *elements = loop->loop_params.i_t.blocksize_array + row;
        while (row + n < loop->loop_params.i_t.count && *whole + elements[n] * loop->el_size <= bytes)
            *whole += elements[n++] * loop->el_size;
    } else {
        const MPI_Aint size = types_elements(loop, row) * loop->el_size;
        n = size ? bytes / size : 0;
        *whole = n * size;
    }
    return n;
}

/* Long messages are packed in parts, one behind the other, and to find where a part begins in a list of uneven rows means
 * to add up all before it. So it is kept where the last parts ended: of several messages, which may be of one type. MPICH
 * packs with its lock held. */
#define TYPES_CURSORS 16
#define TYPES_FEW_ROWS 64

typedef struct types_cursor {
    loop_t *loop;
    MPI_Aint row;
    MPI_Aint bytes;             /* in the rows before it */
} types_cursor_t;

static types_cursor_t types_cursors[TYPES_CURSORS];
static unsigned types_oldest;

TYPES_INLINE int types_has_cursors(loop_t * loop)
{
    return types_kind(loop) == MPII_DATALOOP_KIND_INDEXED && loop->loop_params.i_t.count > TYPES_FEW_ROWS;
}

/* Where to begin for the byte `first`: the nearest one that is not behind it, or the beginning. Returns which one is to be
 * replaced by where the part ends; a loop below this one may replace it meanwhile. */
static int types_find_cursor(loop_t * loop, MPI_Aint first, types_cursor_t * here)
{
    int found = -1;

    for (int i = 0; i < TYPES_CURSORS; i++) {
        const types_cursor_t *c = &types_cursors[i];
        if (c->loop == loop && c->bytes <= first && (found < 0 || c->bytes > here->bytes)) {
            found = i;
            *here = *c;
        }
    }
    return found >= 0 ? found : (int) (types_oldest++ % TYPES_CURSORS);
}

/* A loop has been freed: another one may come to lie where it was. */
void MPIR_Dataloop_forget(void)
{
    memset(types_cursors, 0, sizeof types_cursors);
}

/* Moves it to the row in which the byte `first` is, or to where it ends. */
static void types_seek(types_cursor_t * cursor, MPI_Aint first)
{
    MPI_Aint whole;

    cursor->row += types_whole_rows(cursor->loop, cursor->row, first - cursor->bytes, &whole);
    cursor->bytes += whole;
}

/* The same of all rows of the loop. `here` is where it begins, and then where it ends. */
static char *types_part_from(types_cursor_t * here, char *data, MPI_Aint first, MPI_Aint last, char *packed, int unpacks)
{
    loop_t *loop = here->loop;
    MPI_Aint row;

    types_seek(here, first);
    if (first > here->bytes) {
        const MPI_Aint size = types_elements(loop, here->row) * loop->el_size;
        packed = types_row_part(loop, data, here->row, first - here->bytes, MPL_MIN(last - here->bytes, size), packed,
                                unpacks);
        if (last <= here->bytes + size)
            return packed;
        here->row++;
        here->bytes += size;
    }
    row = here->row;
    types_seek(here, last);
    if (here->row > row)
        packed = types_rows(loop, data, row, here->row, packed, unpacks);
    if (last > here->bytes)
        packed = types_row_part(loop, data, here->row, 0, last - here->bytes, packed, unpacks);
    return packed;
}

static char *types_part(loop_t * loop, char *data, MPI_Aint first, MPI_Aint last, char *packed, int unpacks)
{
    types_cursor_t here = { loop, 0, 0 };
    int cursor;

    if (!types_has_cursors(loop))
        return types_part_from(&here, data, first, last, packed, unpacks);
    cursor = types_find_cursor(loop, first, &here);
    packed = types_part_from(&here, data, first, last, packed, unpacks);
    types_cursors[cursor] = here;
    return packed;
}

/* Packs or unpacks the bytes from `first` to before `last` of elements of a type with gaps; returns how many these were:
 * fewer when unpacking ends within a basic element. `last` is at most the size of all elements. */
static MPI_Aint types_copy(const MPIR_Datatype * type, void *data, MPI_Aint first, MPI_Aint last, void *packed, int unpacks)
{
    char *end = packed;

    if (first < last)
        end = types_part_of_row(type->typerep.handle, data, type->size, type->extent, first, last, packed, unpacks);
    return end - (char *) packed;
}
