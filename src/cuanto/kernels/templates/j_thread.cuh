// The J engine on a GPU: one bra per thread, its potential in registers; tiles of kets are broadcast from shared memory.
// The generated interact() precedes this text. The kets of a block of bras are split into `chunks` parts, one for each
// block of threads, whose sums go to out[chunk][density, t][bra] without atomics.
extern "C" __global__ void __launch_bounds__(THREADS) ENTRY(PARAMETERS) {
    __shared__ REAL tile[TILE * FIELDS];
    const INDEX block = blockIdx.x / chunks, chunk = blockIdx.x % chunks;
    const INDEX mine = block * THREADS + threadIdx.x, b = mine < bras ? mine : bras - 1;
    const INDEX begin = ket_begin[block], count = ket_end[block] - begin;
    const INDEX share = ((count + chunks - 1) / chunks + TILE - 1) / TILE * TILE;
    const INDEX first = begin + chunk * share;
    const INDEX last = first + share < begin + count ? first + share : begin + count;
    REAL bra[GEOMETRY];
    UNROLL for (int i = 0; i < GEOMETRY; ++i) bra[i] = bra_record[b * GEOMETRY + i];
    REAL acc[WIDTH];
    UNROLL for (int j = 0; j < WIDTH; ++j) acc[j] = 0;
#if CUANTO_SINGLE
    double total[WIDTH];
    UNROLL for (int j = 0; j < WIDTH; ++j) total[j] = 0;
#else
    const REAL* total = acc;
#endif
    for (INDEX k = first; k < last; k += TILE) {
        const int kets = last - k < TILE ? (int)(last - k) : TILE;
        __syncthreads();
        for (int i = threadIdx.x; i < kets * FIELDS; i += THREADS) tile[i] = ket_record[k * FIELDS + i];
        __syncthreads();
        NO_UNROLL for (int j = 0; j < kets; ++j) interact(bra, tile + j * FIELDS, boys_table, acc);
#if CUANTO_SINGLE
        UNROLL for (int j = 0; j < WIDTH; ++j) {
            total[j] += acc[j];
            acc[j] = 0;
        }
#endif
    }
    if (mine < bras) {
        UNROLL for (int j = 0; j < WIDTH; ++j) out[(chunk * WIDTH + j) * bras + mine] = total[j];
    }
}
