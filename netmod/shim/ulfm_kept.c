/* Memory in which the data of eager messages wait that come before their receive (decision 0056, patch 99zk), and the
 * temporary memory of long collectives, ours over hosts and MPICH's (patch 99zu). Pieces are kept for the next such use:
 * malloc gives long ones back to the system, and each new one would fault in all its pages. MPICH asks for them where it
 * holds its lock. Part of ulfm_netmod.c. */

/* Pieces have room for 4 KB, 8 KB, and so on up to 4 MB; the longest eager messages, those over tcp, have 320 KB. */
#define KEPT_LEAST_BITS 12
#define KEPT_CLASSES 11

/* So many bytes of pieces are kept without data: 64 of the longest eager messages over tcp are 20 MB, and have pieces of
 * 32 MB. After a time with more all are given back, when none has data: those that are kept are anywhere in malloc's
 * memory, and would hold on to all of it. */
#define KEPT_BYTES ((size_t) 32 << 20)

typedef union kept {
    struct {
        union kept *next;
        size_t bytes;           /* of data */
        int class;
    } piece;
    char line[64];              /* data begin with a cache line where the piece does */
} kept_t;

static kept_t *kept_pieces[KEPT_CLASSES];
static size_t kept_bytes;
static size_t kept_used;        /* bytes of pieces that have data, */
static size_t kept_peak;        /* and the most since there was none */
static int kept_on;             /* between start and end */

static int kept_class(intptr_t size)
{
    int class = 0;

    while (class < KEPT_CLASSES && size > (intptr_t) 1 << (KEPT_LEAST_BITS + class))
        class++;
    return class;
}

static size_t kept_room(int class)
{
    return (size_t) 1 << (KEPT_LEAST_BITS + class);
}

static void kept_give_back(void)
{
    int class;

    for (class = 0; class < KEPT_CLASSES; class++)
        while (kept_pieces[class]) {
            kept_t *piece = kept_pieces[class];
            kept_pieces[class] = piece->piece.next;
            MPL_free(piece);
        }
    kept_bytes = 0;
}

static void kept_start(void)
{
    kept_on = 1;
}

static void kept_end(void)
{
    kept_on = 0;
    kept_give_back();
}

static kept_t *kept_new(size_t bytes)
{
    kept_t *piece = MPL_malloc(sizeof *piece + bytes, MPL_MEM_BUFFER);

    if (!piece && kept_bytes > 0) {
        kept_give_back();      /* which were for other sizes */
        piece = MPL_malloc(sizeof *piece + bytes, MPL_MEM_BUFFER);
    }
    return piece;
}

/* Room for size bytes, or NULL when there is no memory. */
void *MPIDI_nem_ulfm_kept_alloc(intptr_t size)
{
    const int class = kept_class(size);
    kept_t *piece;

    if (class < KEPT_CLASSES && kept_pieces[class]) {
        piece = kept_pieces[class];
        kept_pieces[class] = piece->piece.next;
        kept_bytes -= piece->piece.bytes;
    } else {
        const size_t bytes = class < KEPT_CLASSES ? kept_room(class) : (size_t) size;
        piece = kept_new(bytes);
        if (!piece)
            return NULL;
        piece->piece.class = class;
        piece->piece.bytes = bytes;
    }
    kept_used += piece->piece.bytes;
    kept_peak = MPL_MAX(kept_peak, kept_used);
    return piece + 1;
}

void MPIDI_nem_ulfm_kept_free(void *data)
{
    kept_t *piece = data ? (kept_t *) data - 1 : NULL;

    if (!piece)
        return;
    kept_used -= piece->piece.bytes;
    if (kept_on && piece->piece.class < KEPT_CLASSES && kept_bytes + piece->piece.bytes <= KEPT_BYTES) {
        piece->piece.next = kept_pieces[piece->piece.class];
        kept_pieces[piece->piece.class] = piece;
        kept_bytes += piece->piece.bytes;
    } else {
        MPL_free(piece);
    }
    if (kept_used == 0) {
        if (kept_peak > KEPT_BYTES)
            kept_give_back();
        kept_peak = 0;
    }
}
