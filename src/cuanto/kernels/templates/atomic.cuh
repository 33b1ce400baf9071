// A thread per integral of a class, in whole (not triangular) matrices over the pairs of all symmetries: row and column
// follow from the thread's number by one division, nothing is searched. out_K: (order of p and q, pair) in both directions.
extern "C" __global__ void __launch_bounds__(THREADS) ENTRY(PARAMETERS) {
    const INDEX blocks = (columns + THREADS - 1) / THREADS;
    const INDEX row = row_begin + blockIdx.x / blocks;
    const INDEX column = (blockIdx.x % blocks) * THREADS + threadIdx.x;
    if (row >= row_end || column >= columns) return;
    VEC mine[8];
    const double* record = column_record + (column / GROUP) * (8 * GROUP) + column % GROUP;
    UNROLL for (int field = 0; field < 8; ++field) mine[field] = record[field * GROUP];
    Values X;
    integrals_of(row_record + row * 8, mine, 1.0, shape, table, &X);
    const INDEX y = row_offset + row, x = column_offset + column;
    out_LL[y * stride + x] = X.LL;
#if RELATIVISTIC
    out_SS[y * stride + x] = X.SS;
    out_LS[y * stride + x] = X.LS;
    out_SL[y * stride + x] = X.SL;
    double* K = out_K + y * (2 * stride) + x;
    K[0] = X.K[0];
    K[stride] = X.K[1];
    K += stride * (2 * stride);
    K[0] = X.K[2];
    K[stride] = X.K[3];
#endif
}
