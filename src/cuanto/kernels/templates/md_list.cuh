// Integrals of a list of quartets of any class, without index tables: McMurchie-Davidson as matrix products in shared
// memory, a block of threads for each contracted quartet.
//
//     X_P,cd = sum over ket primitives and Q of R_(P+Q) E_Q,cd
//     (ab|cd) = sum over bra primitives and P of E_P,ab X_P,cd
//
// P and Q are Hermite Gaussians, E their coefficients in the functions of a pair (md_expand.cuh). `batch` ket
// primitives are treated at once, but their Boys functions are evaluated for `ahead`, a multiple of it, and their E are
// in shared memory for `stage` of them; `groups` groups of threads share them and have their own X. `pitch` functions of
// the ket, a multiple of TILE, are treated at a time. The sums over primitives of the bra are in shared memory, or in
// `scratch` where they do not fit. Results [column, bra function, ket function, item].

#define TILE 4

FN int smaller(int a, int b) { return a < b ? a : b; }

// R_tuv of `there` ket primitives at once.
FN void make_all_R(int order, int there, const REAL* bases, const int* tuples, REAL* buffer, int room, REAL* R) {
    const int all = tuples_below(order + 1);
    for (int k = 0; k <= order; ++k) {
        const int count = tuples_of(k), size = count * (order - k + 1);
        for (int item = threadIdx.x; item < there * size; item += blockDim.x) {
            const int c = item / size, inside = item - c * size, n = inside / count, j = inside - n * count;
            const REAL* base = bases + c * (order + 4);
            REAL* mine = buffer + 3 * c * room;
            const REAL *once = mine + (k + 2) % 3 * room, *twice = mine + (k + 1) % 3 * room;
            const REAL value = k > 0 ? next_R(k, n, j, base, tuples, once, twice) : base[3 + n];
            mine[k % 3 * room + inside] = value;
            if (n == 0) R[c * all + tuples_below(k) + j] = value;
        }
        __syncthreads();
    }
}

// Copy the expansions of `count` primitives, `wide` of the `width` functions in each row; those of consecutive
// primitives are `step` numbers apart.
FN void copy_expansions(int hermites, int count, int width, int wide, const REAL* from, INDEX step, REAL* E) {
    const int size = hermites * wide;
    for (int i = threadIdx.x; i < count * size; i += blockDim.x) {
        const int c = i / size, inside = i - c * size, row = wide == width ? 0 : inside / wide;
        E[i] = from[c * step + inside + row * (width - wide)];
    }
}

// X += R E of `there` ket primitives, for `tiles` tiles of functions; `sums`: number of the tuple P + Q, [Q][P].
FN void add_potentials(int bra_hermites, int ket_hermites, int all, int there, int groups, int pitch, int tiles,
                       const int* sums, const REAL* R, const REAL* E, REAL* X) {
    const int tasks = bra_hermites * tiles, wide = tiles * TILE;
    for (int task = threadIdx.x; task < tasks * groups; task += blockDim.x) {
        const int group = task / tasks, rest = task - group * tasks, tile = rest / bra_hermites;
        const int P = rest - tile * bra_hermites;
        REAL* target = X + (group * pitch + tile * TILE) * bra_hermites + P;
        REAL s[TILE];
        UNROLL for (int i = 0; i < TILE; ++i) s[i] = target[i * bra_hermites];
        for (int c = group; c < there; c += groups) {
            const REAL *mine = R + c * all, *row = E + c * ket_hermites * wide + tile * TILE;
            _Pragma("unroll 4") for (int Q = 0; Q < ket_hermites; ++Q) {
                const REAL r = mine[sums[Q * bra_hermites + P]];
                UNROLL for (int i = 0; i < TILE; ++i) s[i] = vfma(r, row[Q * wide + i], s[i]);
            }
        }
        UNROLL for (int i = 0; i < TILE; ++i) target[i * bra_hermites] = s[i];
    }
}

// Integrate the bra's functions with the potentials X and add the results to the sums [column][ket][bra].
FN void add_integrals(int hermites, int functions, int pitch, int tiles, const REAL* E, const REAL* X,
                      const REAL* coefficient, int columns, REAL* acc) {
    for (int task = threadIdx.x; task < functions * tiles; task += blockDim.x) {
        const int tile = task / functions, f = task - tile * functions;
        const REAL* potential = X + tile * TILE * hermites;
        REAL s[TILE] = {};
        _Pragma("unroll 4") for (int P = 0; P < hermites; ++P) {
            const REAL e = E[P * functions + f];
            UNROLL for (int i = 0; i < TILE; ++i) s[i] = vfma(e, potential[i * hermites + P], s[i]);
        }
        for (int q = 0; q < columns; ++q)
            UNROLL for (int i = 0; i < TILE; ++i) {
                REAL* sum = acc + (q * pitch + tile * TILE + i) * functions + f;
                *sum = vfma(coefficient[q], s[i], *sum);
            }
    }
}

// Few registers, so that four blocks share a multiprocessor: most of the time threads wait for each other.
extern "C" __global__ void __launch_bounds__(THREADS, 4) ENTRY(PARAMETERS) {
    extern __shared__ REAL shared_memory[];
    const int order = bra_order + ket_order, all = tuples_below(order + 1);
    const int bra_hermites = tuples_below(bra_order + 1), ket_hermites = tuples_below(ket_order + 1);
    const int bra_size = bra_hermites * bra_functions, ket_size = ket_hermites * ket_width;
    REAL* buffer = shared_memory;
    REAL* R = buffer + 3 * batch * room;
    REAL* bases = R + batch * all;
    REAL* E = bases + ahead * (order + 4);
    REAL* X = E + stage * ket_hermites * pitch;
    REAL* acc = scratch_stride ? scratch + blockIdx.x * scratch_stride : X + groups * pitch * bra_hermites;
    const INDEX items = *count;
    for (INDEX item = blockIdx.x; item < items; item += gridDim.x) {
        const INDEX b = list[2 * item], listed = list[2 * item + 1];
        if (listed < 0) continue;
        const INDEX block = listed / BLOCK, lane = listed % BLOCK;
        const int first = ket_first[block], last = ket_first[block + 1];
        for (int f0 = 0; f0 < ket_functions; f0 += pitch) {
            const int width = smaller(pitch, ket_functions - f0), tiles = (width + TILE - 1) / TILE;
            for (int i = threadIdx.x; i < columns * pitch * bra_functions; i += blockDim.x) acc[i] = 0;
            for (int k = bra_first[b]; k < bra_first[b + 1]; ++k) {
                const REAL* record = bra_record + (INDEX)k * bra_fields;
                for (int i = threadIdx.x; i < groups * pitch * bra_hermites; i += blockDim.x) X[i] = 0;
                for (int c0 = first; c0 < last; c0 += batch) {
                    const int there = smaller(batch, last - c0);
                    const REAL* other = ket_record + (INDEX)c0 * ket_fields * BLOCK + lane;
                    const REAL size = other[SIZE * BLOCK];  // primitives are sorted by it; zero where a ket has no more
                    if (c0 > first && (size == 0 || record[SIZE] * size < REAL(cutoff))) break;
                    const int made = (c0 - first) % ahead;  // of the Boys functions
                    if (made == 0)
                        make_bases(order, record, other, ket_fields, smaller(ahead, last - c0), boys_table, bases);
                    __syncthreads();
                    make_all_R(order, there, bases + made * (order + 4), tuples, buffer, room, R);
                    for (int s = 0; s < there; s += stage) {
                        const int now = smaller(stage, there - s);
                        copy_expansions(ket_hermites, now, ket_width, tiles * TILE,
                                        ket_expansion + ((c0 + s) * (INDEX)BLOCK + lane) * ket_size + f0,
                                        (INDEX)BLOCK * ket_size, E);
                        __syncthreads();
                        add_potentials(bra_hermites, ket_hermites, all, now, groups, pitch, tiles, sums, R + s * all,
                                       E, X);
                        __syncthreads();
                    }
                }
                for (int i = threadIdx.x; groups > 1 && i < pitch * bra_hermites; i += blockDim.x)
                    for (int group = 1; group < groups; ++group) X[i] += X[group * pitch * bra_hermites + i];
                __syncthreads();
                add_integrals(bra_hermites, bra_functions, pitch, tiles, bra_expansion + (INDEX)k * bra_size, X,
                              bra_coefficient + (INDEX)k * columns, columns, acc);
                __syncthreads();
            }
            for (int i = threadIdx.x; i < columns * bra_functions * width; i += blockDim.x) {
                const int g = i % width, f = i / width % bra_functions, q = i / width / bra_functions;
                out[((INDEX)(q * bra_functions + f) * ket_functions + f0 + g) * stride + item] =
                    acc[(q * pitch + g) * bra_functions + f];
            }
            __syncthreads();
        }
    }
}
