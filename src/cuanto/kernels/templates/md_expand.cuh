// Hermite expansions of the functions of all primitives of a class of pairs, a block of threads for each primitive:
// [primitive, Hermite Gaussian, function], filled with zeros up to `width` functions. Field f of primitive i is at
// record[i / lanes * fields * lanes + f * lanes + i % lanes]; lanes is 1 for bras, BLOCK for kets, which have 1/p instead
// of 1/2p, and a sign.

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

KERNEL(THREADS) ENTRY(PARAMETERS) {
    extern __shared__ REAL rows[];
    const Pair pair = {la, lb, start, row, value};
    const int hermites = pair.hermites();
    for (INDEX i = blockIdx.x; i < primitives; i += gridDim.x) {
        const REAL* mine = record + i / lanes * fields * lanes + i % lanes;
        const REAL h = ket ? mine[0] / 2 : mine[10 * lanes];
        for (int item = threadIdx.x; item < pair.rows(); item += blockDim.x)
            make_row(pair, item, mine + (ket ? 5 : 4) * lanes, lanes, h, rows);
        __syncthreads();
        for (int item = threadIdx.x; item < hermites * width; item += blockDim.x) {
            const int at = item / width, f = item - at * width;
            const Tuple here = unpacked(tuples[at]);
            const REAL found = f < functions ? coefficient_of(pair, f, here, rows) : REAL(0);
            out[i * hermites * width + item] = ket && (here.t + here.u + here.v) % 2 ? -found : found;
        }
        __syncthreads();
    }
}
