// Integrals of a list of quartets of any class, without index tables: McMurchie-Davidson as matrix products in shared
// memory, a block of threads for each contracted quartet.
//
//     X_P,cd = sum over ket primitives and Q of R_(P+Q) E_Q,cd
//     (ab|cd) = sum over bra primitives and P of E_P,ab X_P,cd
//
// P and Q are Hermite Gaussians, E their coefficients in the functions of a pair. `batch` ket primitives are treated
// at once; `groups` groups of threads share them and have their own X. `pitch` functions of the ket, a multiple of TILE,
// are treated at a time, and `chunk` functions of the bra. The sums over primitives of the bra are in shared memory, or in
// `scratch` where they do not fit. Results [column, bra function, ket function, item].

#define TILE 4

FN int smaller(int a, int b) { return a < b ? a : b; }

// A pair of shells and its functions: terms `start[f]` to `start[f + 1]` of function f have a factor and a row of each
// axis. Rows hold E_t^{ij} as [axis][i][j][t], filled with zeros for t > i + j.
struct Pair {
    int la, lb;
    const int *start, *row;
    const REAL* factor;
    FN_MEMBER int hermites() const { return tuples_below(la + lb + 1); }
    FN_MEMBER int rows() const { return 3 * (la + 1) * (lb + 1); }
};

// Row `item` of a primitive with the distances of its centre (strided) and h = 1/2p: E_t of the next power is
// h E_(t-1) + shift E_t + (t + 1) E_(t+1).
FN void make_row(const Pair& pair, int item, const REAL* distance, int stride, REAL h, REAL* rows) {
    const int nb = pair.lb + 1, na = pair.la + 1, length = pair.la + pair.lb + 1;
    const int j = item % nb, i = item / nb % na, axis = item / (nb * na);
    const REAL PA = distance[axis * stride], PB = distance[(3 + axis) * stride];
    REAL* e = rows + item * length;
    e[0] = 1;
    for (int t = 1; t < length; ++t) e[t] = 0;
    for (int n = 0; n < i + j; ++n) {
        const REAL shift = n < i ? PA : PB;
        REAL below = 0;
        for (int t = 0; t <= n + 1; ++t) {
            const REAL same = e[t], above = t < n ? e[t + 1] : REAL(0);
            e[t] = vfma(h, below, vfma(shift, same, REAL(t + 1) * above));
            below = same;
        }
    }
}

// E of one Hermite Gaussian in function f.
FN REAL coefficient_of(const Pair& pair, int f, const Tuple& at, const REAL* rows) {
    REAL sum = 0;
    for (int e = pair.start[f]; e < pair.start[f + 1]; ++e) {
        const int* row = pair.row + 3 * e;
        sum = vfma(pair.factor[e] * rows[row[0] + at.t], rows[row[1] + at.u] * rows[row[2] + at.v], sum);
    }
    return sum;
}

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

// X += R E of `there` ket primitives; `sums`: number of the tuple P + Q, [Q][P].
FN void add_potentials(int bra_hermites, int ket_hermites, int all, int there, int groups, int pitch, const int* sums,
                       const REAL* R, const REAL* E, REAL* X) {
    const int tasks = bra_hermites * (pitch / TILE);
    for (int task = threadIdx.x; task < tasks * groups; task += blockDim.x) {
        const int group = task / tasks, rest = task - group * tasks, tile = rest / bra_hermites;
        const int P = rest - tile * bra_hermites;
        REAL* target = X + (group * pitch + tile * TILE) * bra_hermites + P;
        REAL s[TILE];
        UNROLL for (int i = 0; i < TILE; ++i) s[i] = target[i * bra_hermites];
        for (int c = group; c < there; c += groups) {
            const REAL *mine = R + c * all, *row = E + c * ket_hermites * pitch + tile * TILE;
            _Pragma("unroll 4") for (int Q = 0; Q < ket_hermites; ++Q) {
                const REAL r = mine[sums[Q * bra_hermites + P]];
                UNROLL for (int i = 0; i < TILE; ++i) s[i] = vfma(r, row[Q * pitch + i], s[i]);
            }
        }
        UNROLL for (int i = 0; i < TILE; ++i) target[i * bra_hermites] = s[i];
    }
}

// The bra's functions from `first` on, as many as `count`, in the potentials X, into the sums [column][ket][bra].
FN void add_integrals(int bra_hermites, int bra_functions, int first, int count, int pitch, const REAL* E, const REAL* X,
                      const REAL* coefficient, int columns, REAL* acc) {
    for (int task = threadIdx.x; task < count * (pitch / TILE); task += blockDim.x) {
        const int tile = task / count, f = task - tile * count;
        const REAL* potential = X + tile * TILE * bra_hermites;
        REAL s[TILE] = {};
        _Pragma("unroll 4") for (int P = 0; P < bra_hermites; ++P) {
            const REAL e = E[P * count + f];
            UNROLL for (int i = 0; i < TILE; ++i) s[i] = vfma(e, potential[i * bra_hermites + P], s[i]);
        }
        for (int q = 0; q < columns; ++q)
            UNROLL for (int i = 0; i < TILE; ++i) {
                REAL* sum = acc + (INDEX)(q * pitch + tile * TILE + i) * bra_functions + first + f;
                *sum = vfma(coefficient[q], s[i], *sum);
            }
    }
}

KERNEL(THREADS) ENTRY(PARAMETERS) {
    extern __shared__ REAL shared_memory[];
    const Pair bra = {la, lb, bra_start, bra_row, bra_value}, ket = {lc, ld, ket_start, ket_row, ket_value};
    const int order = la + lb + lc + ld, all = tuples_below(order + 1);
    const int bra_hermites = bra.hermites(), ket_hermites = ket.hermites();
    REAL* buffer = shared_memory;
    REAL* R = buffer + 3 * batch * room;
    REAL* bases = R + batch * all;
    REAL* rows = bases + batch * (order + 4);
    REAL* E = rows + row_room;
    REAL* X = E + expansion_room;
    REAL* acc = scratch_stride ? scratch + blockIdx.x * scratch_stride : X + groups * pitch * bra_hermites;
    const INDEX items = *count;
    for (INDEX item = blockIdx.x; item < items; item += gridDim.x) {
        const INDEX b = list[2 * item], listed = list[2 * item + 1];
        if (listed < 0) continue;
        const INDEX block = listed / BLOCK, lane = listed % BLOCK;
        const int first = ket_first[block], last = ket_first[block + 1];
        for (int f0 = 0; f0 < ket_functions; f0 += pitch) {
            const int width = smaller(pitch, ket_functions - f0), sums_size = columns * pitch * bra_functions;
            for (int i = threadIdx.x; i < sums_size; i += blockDim.x) acc[i] = 0;
            for (int k = bra_first[b]; k < bra_first[b + 1]; ++k) {
                const REAL* record = bra_record + (INDEX)k * bra_fields;
                for (int i = threadIdx.x; i < groups * pitch * bra_hermites; i += blockDim.x) X[i] = 0;
                for (int c0 = first; c0 < last; c0 += batch) {
                    const int there = smaller(batch, last - c0);
                    const REAL* other = ket_record + (INDEX)c0 * ket_fields * BLOCK + lane;
                    const REAL size = other[SIZE * BLOCK];  // primitives are sorted by it; zero where a ket has no more
                    if (c0 > first && (size == 0 || record[SIZE] * size < REAL(cutoff))) break;
                    make_bases(order, record, other, ket_fields, there, boys_table, bases);
                    for (int i = threadIdx.x; i < there * ket.rows(); i += blockDim.x) {
                        const int c = i / ket.rows();
                        const REAL* mine = other + (INDEX)c * ket_fields * BLOCK;
                        make_row(ket, i - c * ket.rows(), mine + 5 * BLOCK, BLOCK, mine[0] / 2,
                                 rows + c * ket.rows() * (lc + ld + 1));
                    }
                    __syncthreads();
                    for (int i = threadIdx.x; i < there * ket_hermites * pitch; i += blockDim.x) {
                        const int f = i % pitch, at = i / pitch % ket_hermites, c = i / pitch / ket_hermites;
                        const Tuple here = unpacked(tuples[at]);
                        REAL value = 0;
                        if (f < width)
                            value = coefficient_of(ket, f0 + f, here, rows + c * ket.rows() * (lc + ld + 1));
                        E[i] = (here.t + here.u + here.v) % 2 ? -value : value;
                    }
                    make_all_R(order, there, bases, tuples, buffer, room, R);
                    add_potentials(bra_hermites, ket_hermites, all, there, groups, pitch, sums, R, E, X);
                    __syncthreads();
                }
                for (int i = threadIdx.x; groups > 1 && i < pitch * bra_hermites; i += blockDim.x)
                    for (int group = 1; group < groups; ++group) X[i] += X[group * pitch * bra_hermites + i];
                for (int i = threadIdx.x; i < bra.rows(); i += blockDim.x)
                    make_row(bra, i, record + 4, 1, record[10], rows);
                __syncthreads();
                for (int g0 = 0; g0 < bra_functions; g0 += chunk) {
                    const int wanted = smaller(chunk, bra_functions - g0);
                    for (int i = threadIdx.x; i < wanted * bra_hermites; i += blockDim.x) {
                        const int at = i / wanted;
                        E[i] = coefficient_of(bra, g0 + i - at * wanted, unpacked(tuples[at]), rows);
                    }
                    __syncthreads();
                    add_integrals(bra_hermites, bra_functions, g0, wanted, pitch, E, X,
                                  bra_coefficient + (INDEX)k * columns, columns, acc);
                    __syncthreads();
                }
            }
            for (int i = threadIdx.x; i < columns * bra_functions * width; i += blockDim.x) {
                const int g = i % width, f = i / width % bra_functions, q = i / width / bra_functions;
                out[((INDEX)(q * bra_functions + f) * ket_functions + f0 + g) * stride + item] =
                    acc[(INDEX)(q * pitch + g) * bra_functions + f];
            }
            __syncthreads();
        }
    }
}
