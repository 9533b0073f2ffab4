/* MPI's predefined operations by the kernels of libulfm. Part of ulfm_netmod.c.
 *
 * MPICH calls an operation by its table: MPI_Reduce_local, collectives, accumulate. The table's entries are replaced,
 * and what no kernel exists for goes to the function that was there. */

enum { N_OPS = ULFM_OP_COUNT, DIRECT_TYPES = 0x80, N_TYPES = DIRECT_TYPES + 8 };

static MPIR_op_function *mpich_ops[N_OPS];
static ulfm_kernel kernels[N_OPS][N_TYPES];

/* The pairs of different types are not builtin handles but the first direct ones. */
static int type_index(MPI_Datatype type)
{
    return HANDLE_IS_BUILTIN(type) ? (type & 0x7f) : DIRECT_TYPES + (type & 7);
}

static void run_op(int op, void *in, void *inout, MPI_Aint * len, MPI_Datatype * type)
{
    ulfm_kernel kernel = kernels[op][type_index(*type)];
    if (likely(kernel))
        kernel(inout, in, *len);
    else
        mpich_ops[op] (in, inout, len, type);
}

#define OP(name, op) \
    static void name(void *in, void *inout, MPI_Aint * len, MPI_Datatype * type) { run_op(op, in, inout, len, type); }
OP(op_max, ULFM_OP_MAX)
OP(op_min, ULFM_OP_MIN)
OP(op_sum, ULFM_OP_SUM)
OP(op_prod, ULFM_OP_PROD)
OP(op_land, ULFM_OP_LAND)
OP(op_band, ULFM_OP_BAND)
OP(op_lor, ULFM_OP_LOR)
OP(op_bor, ULFM_OP_BOR)
OP(op_lxor, ULFM_OP_LXOR)
OP(op_bxor, ULFM_OP_BXOR)
OP(op_minloc, ULFM_OP_MINLOC)
OP(op_maxloc, ULFM_OP_MAXLOC)

static int integer_type(int is_signed, size_t size)
{
    static const int of_size[4] = { ULFM_TYPE_I8, ULFM_TYPE_I16, ULFM_TYPE_I32, ULFM_TYPE_I64 };
    static const int unsigned_of_size[4] = { ULFM_TYPE_U8, ULFM_TYPE_U16, ULFM_TYPE_U32, ULFM_TYPE_U64 };
    int i = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3;
    return is_signed ? of_size[i] : unsigned_of_size[i];
}

static void map_type(MPI_Datatype type, int kind)
{
    int op;
    if (type == MPI_DATATYPE_NULL)
        return;
    for (op = ULFM_OP_MAX; op < N_OPS; op++)
        kernels[op][type_index(type)] = ulfm->kernel(op, kind);
}

/* As MPICH's own functions take them (mpir_op_util.h). MPI_BYTE has bitwise operations only, but nobody asks for
 * others: MPICH has checked that. */
#define INTEGER(mpi, c) map_type(mpi, integer_type((c) -1 < (c) 1, sizeof(c)))
static void map_integers(void)
{
    INTEGER(MPI_CHAR, char);
    INTEGER(MPI_SIGNED_CHAR, signed char);
    INTEGER(MPI_UNSIGNED_CHAR, unsigned char);
    INTEGER(MPI_BYTE, unsigned char);
    INTEGER(MPI_SHORT, short);
    INTEGER(MPI_UNSIGNED_SHORT, unsigned short);
    INTEGER(MPI_INT, int);
    INTEGER(MPI_UNSIGNED, unsigned);
    INTEGER(MPI_LONG, long);
    INTEGER(MPI_UNSIGNED_LONG, unsigned long);
    INTEGER(MPI_LONG_LONG_INT, long long);
    INTEGER(MPI_UNSIGNED_LONG_LONG, unsigned long long);
    INTEGER(MPI_INT8_T, int8_t);
    INTEGER(MPI_INT16_T, int16_t);
    INTEGER(MPI_INT32_T, int32_t);
    INTEGER(MPI_INT64_T, int64_t);
    INTEGER(MPI_UINT8_T, uint8_t);
    INTEGER(MPI_UINT16_T, uint16_t);
    INTEGER(MPI_UINT32_T, uint32_t);
    INTEGER(MPI_UINT64_T, uint64_t);
    INTEGER(MPI_AINT, MPI_Aint);
    INTEGER(MPI_OFFSET, MPI_Offset);
    INTEGER(MPI_COUNT, MPI_Count);
#ifdef HAVE_FORTRAN_BINDING
    INTEGER(MPI_INTEGER, MPI_Fint);
    INTEGER(MPI_CHARACTER, char);
    INTEGER(MPI_INTEGER1, int8_t);
    INTEGER(MPI_INTEGER2, int16_t);
    INTEGER(MPI_INTEGER4, int32_t);
    INTEGER(MPI_INTEGER8, int64_t);
#endif
}

static void map_reals(void)
{
    map_type(MPI_FLOAT, ULFM_TYPE_F32);
    map_type(MPI_DOUBLE, ULFM_TYPE_F64);
    map_type(MPI_LONG_DOUBLE, ULFM_TYPE_FLONG);
#ifdef HAVE_FLOAT16
    map_type(MPIX_C_FLOAT16, ULFM_TYPE_F16);
#endif
    map_type(MPI_C_BOOL, ULFM_TYPE_BOOL);
    map_type(MPI_C_FLOAT_COMPLEX, ULFM_TYPE_C32);
    map_type(MPI_C_DOUBLE_COMPLEX, ULFM_TYPE_C64);
    map_type(MPI_C_LONG_DOUBLE_COMPLEX, ULFM_TYPE_CLONG);
#ifdef HAVE_CXX_COMPLEX
    map_type(MPI_CXX_BOOL, ULFM_TYPE_BOOL);
    map_type(MPI_CXX_FLOAT_COMPLEX, ULFM_TYPE_X32);
    map_type(MPI_CXX_DOUBLE_COMPLEX, ULFM_TYPE_X64);
    map_type(MPI_CXX_LONG_DOUBLE_COMPLEX, ULFM_TYPE_XLONG);
#endif
}

/* Where Fortran's default kinds have other sizes (-fdefault-real-8), MPICH's functions stay. */
static void map_fortran(void)
{
#ifdef HAVE_FORTRAN_BINDING
    MPIR_FC_REAL_CTYPE real = 0;
    MPIR_FC_DOUBLE_CTYPE twice = 0;
    map_type(MPI_REAL4, ULFM_TYPE_F32);
    map_type(MPI_REAL8, ULFM_TYPE_F64);
#if defined(MPIR_REAL16_CTYPE) && defined(__x86_64__)
    map_type(MPI_REAL16, sizeof(MPIR_REAL16_CTYPE) == 16 ? ULFM_TYPE_F128 : ULFM_TYPE_NONE);
#endif
    map_type(MPI_COMPLEX8, ULFM_TYPE_X32);
    map_type(MPI_COMPLEX16, ULFM_TYPE_X64);
    if (sizeof real == sizeof(float) && sizeof twice == sizeof(double)) {
        map_type(MPI_REAL, ULFM_TYPE_F32);
        map_type(MPI_DOUBLE_PRECISION, ULFM_TYPE_F64);
        map_type(MPI_COMPLEX, ULFM_TYPE_X32);
        map_type(MPI_DOUBLE_COMPLEX, ULFM_TYPE_X64);
        map_type(MPI_2REAL, ULFM_TYPE_2FLOAT);
        map_type(MPI_2DOUBLE_PRECISION, ULFM_TYPE_2DOUBLE);
    }
    if (sizeof(MPI_Fint) == 4) {
        map_type(MPI_LOGICAL, ULFM_TYPE_LOGICAL);
        map_type(MPI_2INTEGER, ULFM_TYPE_2INT);
    }
#endif
}

static void map_pairs(void)
{
    map_type(MPI_2INT, ULFM_TYPE_2INT);
    map_type(MPI_FLOAT_INT, ULFM_TYPE_FLOAT_INT);
    map_type(MPI_DOUBLE_INT, ULFM_TYPE_DOUBLE_INT);
    map_type(MPI_LONG_INT, ULFM_TYPE_LONG_INT);
    map_type(MPI_SHORT_INT, ULFM_TYPE_SHORT_INT);
    map_type(MPI_LONG_DOUBLE_INT, ULFM_TYPE_FLONG_INT);
}

static void use_kernels(void)
{
    static MPIR_op_function *const ops[N_OPS] = {
        NULL, op_max, op_min, op_sum, op_prod, op_land, op_band, op_lor, op_bor, op_lxor, op_bxor, op_minloc, op_maxloc
    };
    int op;
    map_integers();
    map_reals();
    map_fortran();
    map_pairs();
    for (op = ULFM_OP_MAX; op < N_OPS; op++) {
        mpich_ops[op] = MPIR_Op_table[op];
        MPIR_Op_table[op] = ops[op];
    }
}
