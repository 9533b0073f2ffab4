/* Memory in which the data of eager messages wait that come before their receive (decision 0056, patch 99zk), and the
 * temporary memory of long collectives, ours over hosts and MPICH's (patch 99zu). Pieces are kept for the next such use:
 * malloc gives long ones back to the system, and each new one would fault in all its pages. MPICH asks for them where it
 * holds its lock. Part of ulfm_netmod.c. */

/* Pieces have room for 4 KB, 8 KB, and so on up to 4 MB; the longest eager messages, those over tcp, have 320 KB. */
#define EARLY_LEAST_BITS 12
#define EARLY_CLASSES 11

/* So many bytes of pieces are kept without data: 64 of the longest eager messages within a host are 4 MB. After a
 * time with more all are given back, when none has data: those that are kept are anywhere in malloc's memory, and
 * would hold on to all of it. */
#define EARLY_KEPT ((size_t) 8 << 20)

typedef union early {
    struct {
        union early *next;
        size_t bytes;           /* of data */
        int class;
    } piece;
    char line[64];              /* data begin with a cache line where the piece does */
} early_t;

static early_t *early_free[EARLY_CLASSES];
static size_t early_kept;
static size_t early_used;       /* bytes of pieces that have data, */
static size_t early_most;       /* and the most since there was none */
static int early_keeps;         /* between start and end */

static int early_class(intptr_t size)
{
    int class = 0;

    while (class < EARLY_CLASSES && size > (intptr_t) 1 << (EARLY_LEAST_BITS + class))
        class++;
    return class;
}

static size_t early_room(int class)
{
    return (size_t) 1 << (EARLY_LEAST_BITS + class);
}

static void early_give_back(void)
{
    int class;

    for (class = 0; class < EARLY_CLASSES; class++)
        while (early_free[class]) {
            early_t *piece = early_free[class];
            early_free[class] = piece->piece.next;
            MPL_free(piece);
        }
    early_kept = 0;
}

static void early_start(void)
{
    early_keeps = 1;
}

static void early_end(void)
{
    early_keeps = 0;
    early_give_back();
}

static early_t *early_new(size_t bytes)
{
    early_t *piece = MPL_malloc(sizeof *piece + bytes, MPL_MEM_BUFFER);

    if (!piece && early_kept > 0) {
        early_give_back();      /* which were for other sizes */
        piece = MPL_malloc(sizeof *piece + bytes, MPL_MEM_BUFFER);
    }
    return piece;
}

/* Room for size bytes, or NULL when there is no memory. */
void *MPIDI_nem_ulfm_early_alloc(intptr_t size)
{
    const int class = early_class(size);
    early_t *piece;

    if (class < EARLY_CLASSES && early_free[class]) {
        piece = early_free[class];
        early_free[class] = piece->piece.next;
        early_kept -= piece->piece.bytes;
    } else {
        const size_t bytes = class < EARLY_CLASSES ? early_room(class) : (size_t) size;
        piece = early_new(bytes);
        if (!piece)
            return NULL;
        piece->piece.class = class;
        piece->piece.bytes = bytes;
    }
    early_used += piece->piece.bytes;
    early_most = MPL_MAX(early_most, early_used);
    return piece + 1;
}

void MPIDI_nem_ulfm_early_free(void *data)
{
    early_t *piece = data ? (early_t *) data - 1 : NULL;

    if (!piece)
        return;
    early_used -= piece->piece.bytes;
    if (early_keeps && piece->piece.class < EARLY_CLASSES && early_kept + piece->piece.bytes <= EARLY_KEPT) {
        piece->piece.next = early_free[piece->piece.class];
        early_free[piece->piece.class] = piece;
        early_kept += piece->piece.bytes;
    } else {
        MPL_free(piece);
    }
    if (early_used == 0) {
        if (early_most > EARLY_KEPT)
            early_give_back();
        early_most = 0;
    }
}
