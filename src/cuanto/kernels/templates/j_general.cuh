// The J engine on a GPU for any class: a block processes one bra with `lanes` kets at once; R_tuv of two orders n, the
// densities of the kets and the sums of every lane are in shared memory.
// tuples: rows (t, u, v, axis to lower, power left, number lowered once, number lowered twice, 0) by rising degree.
FN int j_count(int order) { return (order + 1) * (order + 2) * (order + 3) / 6; }

enum { AT_ONCE = 4 };  // sums of a thread that use each loaded density

// sum_s R_(t+s) H_s for AT_ONCE tuples t. Tuples are numbered by degree D, then by r = u + v, then by v, so that the
// number of t + s is that of its (D, r) plus v: the innermost loop runs along both lists.
FN void j_products(const REAL* R, const REAL* H, int ket_order, int lanes, const int* D, const int* r, const int* v,
                   REAL* sum) {
    int s = 0;
    for (int degree = 0; degree <= ket_order; ++degree) {
        for (int rest = 0; rest <= degree; ++rest) {
            int from[AT_ONCE];
            UNROLL for (int i = 0; i < AT_ONCE; ++i) {
                const int a = D[i] + degree, b = r[i] + rest;
                from[i] = (a * (a + 1) * (a + 2) / 6 + b * (b + 1) / 2 + v[i]) * lanes;
            }
            for (int k = 0; k <= rest; ++k, ++s) {
                const REAL h = H[s * lanes];
                UNROLL for (int i = 0; i < AT_ONCE; ++i) sum[i] = vfma(h, R[from[i] + k * lanes], sum[i]);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) ENTRY(PARAMETERS) {
    extern __shared__ double shared_memory[];
    const int order = bra_order + ket_order, count = j_count(order);
    const int bra_count = j_count(bra_order), ket_count = j_count(ket_order), width = densities * bra_count;
    const int fields = GEOMETRY + densities * ket_count;
    double* acc = shared_memory;
    REAL* base = (REAL*)(acc + width * lanes);
    REAL* X = base + (BOYS_MAX_ORDER + 1) * lanes;
    REAL* H = X + 3 * lanes;
    REAL* now = H + densities * ket_count * lanes;
    REAL* above = now + count * lanes;
    const INDEX b = blockIdx.x / chunks, chunk = blockIdx.x % chunks, block = b / THREADS;
    const INDEX begin = ket_begin[block], kets = ket_end[block] - begin;
    const INDEX share = ((kets + chunks - 1) / chunks + lanes - 1) / lanes * lanes;
    const INDEX first = begin + chunk * share;
    const INDEX last = first + share < begin + kets ? first + share : begin + kets;
    const int lane = threadIdx.x % lanes, worker = threadIdx.x / lanes, workers = THREADS / lanes;
    const int4* rows = (const int4*)tuples;
    for (int i = threadIdx.x; i < width * lanes; i += THREADS) acc[i] = 0;
    for (INDEX k = first; k < last; k += lanes) {
        const bool mine = k + lane < last;
        const REAL* ket = ket_record + (mine ? k + lane : first) * fields;
        __syncthreads();
        for (int s = worker; s < densities * ket_count; s += workers) H[s * lanes + lane] = ket[GEOMETRY + s];
        if (worker == 0) {
            REAL place[3], F[BOYS_MAX_ORDER + 1];
            j_base_any(order, bra_record + b * GEOMETRY, ket, boys_table, place, F);
            for (int n = 0; n <= order; ++n) base[n * lanes + lane] = mine ? F[n] : REAL(0);
            for (int i = 0; i < 3; ++i) X[i * lanes + lane] = place[i];
        }
        __syncthreads();
        for (int n = order; n >= 0; --n) {
            REAL* swap = above;
            above = now;
            now = swap;
            for (int j = worker; j < j_count(order - n); j += workers) {
                REAL value = base[n * lanes + lane];
                if (j > 0) {
                    const int axis = rows[2 * j].w;
                    const int4 lower = rows[2 * j + 1];  // power left, lowered once, lowered twice
                    value = X[axis * lanes + lane] * above[lower.y * lanes + lane];
                    if (lower.x > 0) value = vfma(REAL(lower.x), above[lower.z * lanes + lane], value);
                }
                now[j * lanes + lane] = value;
            }
            __syncthreads();
        }
        for (int j = worker; j < bra_count; j += AT_ONCE * workers) {
            int D[AT_ONCE], r[AT_ONCE], v[AT_ONCE];
            UNROLL for (int i = 0; i < AT_ONCE; ++i) {
                const int at = j + i * workers;
                const int4 t = rows[2 * (at < bra_count ? at : 0)];
                v[i] = t.z;
                r[i] = t.y + t.z;
                D[i] = t.x + r[i];
            }
            for (int d = 0; d < densities; ++d) {
                REAL sum[AT_ONCE];
                UNROLL for (int i = 0; i < AT_ONCE; ++i) sum[i] = 0;
                j_products(now + lane, H + d * ket_count * lanes + lane, ket_order, lanes, D, r, v, sum);
                UNROLL for (int i = 0; i < AT_ONCE; ++i) {
                    const int at = j + i * workers;
                    if (at < bra_count) acc[(d * bra_count + at) * lanes + lane] += sum[i];
                }
            }
        }
    }
    __syncthreads();
    for (int j = threadIdx.x; j < width; j += THREADS) {
        double sum = 0;
        for (int i = 0; i < lanes; ++i) sum += acc[j * lanes + i];
        out[(chunk * width + j) * bras + b] = sum;
    }
}
