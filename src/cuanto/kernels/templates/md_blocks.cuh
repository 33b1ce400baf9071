// The McMurchie-Davidson scheme as in Fujii et al., "A parallel computation for McMurchie-Davidson algorithm on the GPU"
// (2024): a block of threads for one contracted integral (1B1CI, PER_INTEGRAL 1) or one contracted shell quartet (1B1SP, 0).
//
// The threads share the recursion R_tuv^n, batch by batch (k = t + u + v); a batch needs the two before it, so that three
// buffers of shared memory are used in rotation, and R_tuv^0 is kept beside them. One text serves every class to l = BLOCK_L:
// momenta are arguments, functions of a pair come as sparse rows over its monomials (md_blocks.py). Monomials of degree l
// are the tuples of that degree (md_recursion.cuh).

#define BLOCK_L 5
#define CHUNK 32  // primitive quartets whose Boys functions are evaluated together

// E_t^{ij}, t = 0 .. i + j, along one axis, unrolled for each (i, j). E_t of the next power is
// h E_(t-1) + shift E_t + (t + 1) E_(t+1), Fujii et al. eq. 6.
template <int I, int J>
FN void expansion(REAL PA, REAL PB, REAL h, REAL* E) {
    REAL e[I + J + 1];
    e[0] = 1;
    UNROLL for (int n = 0; n < I + J; ++n) {
        const REAL shift = n < I ? PA : PB;
        REAL below = 0;
        UNROLL for (int t = 0; t <= n + 1; ++t) {
            const REAL same = t <= n ? e[t] : REAL(0);
            const REAL above = t < n ? e[t + 1] : REAL(0);
            e[t] = vfma(h, below, vfma(shift, same, REAL(t + 1) * above));
            below = same;
        }
    }
    UNROLL for (int t = 0; t <= I + J; ++t) E[t] = e[t];
}

#define EXPANSION(i, j) case (i) * (BLOCK_L + 1) + (j): expansion<i, j>(PA, PB, h, E); break;
#define EXPANSIONS(i) EXPANSION(i, 0) EXPANSION(i, 1) EXPANSION(i, 2) EXPANSION(i, 3) EXPANSION(i, 4) EXPANSION(i, 5)
FN void expansion_of(int i, int j, REAL PA, REAL PB, REAL h, REAL* E) {
    switch (i * (BLOCK_L + 1) + j) {
        EXPANSIONS(0) EXPANSIONS(1) EXPANSIONS(2) EXPANSIONS(3) EXPANSIONS(4) EXPANSIONS(5)
    }
}

// A pair of shells (lb = 0 for a single one); `rows` hold E_t^{ij} as [axis][i][j][t].
struct Side {
    int la, lb;
    const int* tuples;
    FN_MEMBER int order() const { return la + lb; }
    FN_MEMBER int monomials() const { return tuples_of(la) * tuples_of(lb); }
    FN_MEMBER int rows() const { return 3 * (la + 1) * (lb + 1); }
    FN_MEMBER int row(int axis, int i, int j) const { return ((axis * (la + 1) + i) * (lb + 1) + j) * (la + lb + 1); }
    FN_MEMBER Tuple a(int monomial) const { return unpacked(tuples[tuples_below(la) + monomial / tuples_of(lb)]); }
    FN_MEMBER Tuple b(int monomial) const { return unpacked(tuples[tuples_below(lb) + monomial % tuples_of(lb)]); }
};

// Powers of both shells of one monomial and its rows.
struct Monomial {
    int x, y, z, row_x, row_y, row_z;
    FN_MEMBER Monomial(const Side& side, int monomial) {
        const Tuple a = side.a(monomial), b = side.b(monomial);
        x = a.t + b.t, y = a.u + b.u, z = a.v + b.v;
        row_x = side.row(0, a.t, b.t), row_y = side.row(1, a.u, b.u), row_z = side.row(2, a.v, b.v);
    }
};

// One primitive of a side: distances to both centres (strided), 1/2p.
struct Primitive {
    const REAL* distance;
    int stride;
    REAL h;
    FN_MEMBER REAL shift(int k) const { return distance ? distance[k * stride] : REAL(0); }
};

// All rows of a side, or the three of one monomial.
FN void make_rows(const Side& side, const Primitive& primitive, int monomial, REAL* rows) {
    const int count = monomial < 0 ? side.rows() : 3;
    for (int item = threadIdx.x; item < count; item += blockDim.x) {
        int axis = item, i, j;
        if (monomial < 0) {
            const int nb = side.lb + 1, na = side.la + 1;
            j = item % nb, i = item / nb % na, axis = item / (nb * na);
        } else {
            const Tuple a = side.a(monomial), b = side.b(monomial);
            i = axis == 0 ? a.t : axis == 1 ? a.u : a.v, j = axis == 0 ? b.t : axis == 1 ? b.u : b.v;
        }
        expansion_of(i, j, primitive.shift(axis), primitive.shift(3 + axis), primitive.h, rows + side.row(axis, i, j));
    }
}

// R_tuv = R_tuv^0 of all degrees to `order` (Fujii et al. eq. 7), by three buffers of `room` numbers in rotation.
FN void make_R(int order, const REAL* base, const int* tuples, REAL* buffer, int room, REAL* R) {
    for (int k = 0; k <= order; ++k) {
        REAL* now = buffer + k % 3 * room;
        const REAL* once = buffer + (k + 2) % 3 * room;
        const REAL* twice = buffer + (k + 1) % 3 * room;
        const int count = tuples_of(k), first = tuples_below(k);
        for (int item = threadIdx.x; item < count * (order - k + 1); item += blockDim.x) {
            const int n = item / count, j = item - n * count;
            const REAL value = k > 0 ? next_R(k, n, j, base, tuples, once, twice) : base[3 + n];
            now[item] = value;
            if (n == 0) R[first + j] = value;
        }
        __syncthreads();
    }
}

// Functions of a side as sparse rows over its monomials.
struct Functions { const int* first; const int* monomial; const REAL* value; };

// Hermite coefficients of one function of a side: `coefficient` and packed `tuple`, as many as are returned.
FN int expand(const Side& side, const REAL* rows, const Functions& functions, int f, REAL scale, bool ket,
              REAL* coefficient, int* tuple) {
    const int begin = functions.first[f], entries = functions.first[f + 1] - begin;
    const Monomial single(side, functions.monomial[begin]);
    const int size = entries == 1 ? (single.x + 1) * (single.y + 1) * (single.z + 1) : tuples_below(side.order() + 1);
    for (int item = threadIdx.x; item < size; item += blockDim.x) {
        const int yz = (single.y + 1) * (single.z + 1);
        const Tuple here = entries == 1 ? Tuple{item / yz, item % yz / (single.z + 1), item % (single.z + 1)}
                                        : unpacked(side.tuples[item]);
        REAL sum = 0;
        for (int e = begin; e < begin + entries; ++e) {
            const Monomial m(side, functions.monomial[e]);
            if (here.t <= m.x && here.u <= m.y && here.v <= m.z)
                sum += functions.value[e] * rows[m.row_x + here.t] * rows[m.row_y + here.u] * rows[m.row_z + here.v];
        }
        coefficient[item] = ket && (here.t + here.u + here.v) % 2 ? -scale * sum : scale * sum;
        tuple[item] = here.t | here.u << 8 | here.v << 16;
    }
    return size;
}

FN REAL block_sum(REAL value, REAL* room) {
    room[threadIdx.x] = value;
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) room[threadIdx.x] += room[threadIdx.x + half];
    }
    __syncthreads();
    return room[0];
}

// The potential of ket monomial g, integrated with the Hermite Gaussian (t, u, v) of the bra.
FN REAL potential_of(const Side& ket, const REAL* rows, int g, const Tuple& at, const REAL* R) {
    const Monomial m(ket, g);
    REAL sum = 0;
    for (int t = 0; t <= m.x; ++t)
        for (int u = 0; u <= m.y; ++u) {
            REAL inner = 0;
            for (int v = 0; v <= m.z; ++v) {
                const REAL E = rows[m.row_z + v];
                inner = vfma(v % 2 ? -E : E, R[place(at.t + t, at.u + u, at.v + v)], inner);
            }
            const REAL E = rows[m.row_x + t] * rows[m.row_y + u];
            sum = vfma((t + u) % 2 ? -E : E, inner, sum);
        }
    return sum;
}

// The integral of a bra monomial with that potential.
FN REAL integral_of(const Side& bra, const REAL* rows, int f, const REAL* potential) {
    const Monomial m(bra, f);
    REAL sum = 0;
    for (int t = 0; t <= m.x; ++t)
        for (int u = 0; u <= m.y; ++u) {
            REAL inner = 0;
            for (int v = 0; v <= m.z; ++v) inner = vfma(rows[m.row_z + v], potential[place(t, u, v)], inner);
            sum = vfma(rows[m.row_x + t] * rows[m.row_y + u], inner, sum);
        }
    return sum;
}

// Add one primitive quartet to the sums over monomials [column][bra][ket], `at_once` ket monomials at a time.
FN void add_quartet(const Side& bra, const Side& ket, const REAL* bra_E, const REAL* ket_E, const REAL* R, int at_once,
                    REAL* potential, const REAL* coefficient, int columns, REAL* acc) {
    const int tuples = tuples_below(bra.order() + 1), bra_count = bra.monomials(), ket_count = ket.monomials();
    for (int g0 = 0; g0 < ket_count; g0 += at_once) {
        const int width = ket_count - g0 < at_once ? ket_count - g0 : at_once;
        for (int i = threadIdx.x; i < width * tuples; i += blockDim.x)
            potential[i] = potential_of(ket, ket_E, g0 + i / tuples, unpacked(bra.tuples[i % tuples]), R);
        __syncthreads();
        for (int i = threadIdx.x; i < width * bra_count; i += blockDim.x) {
            const int f = i / width, g = i - f * width;
            const REAL value = integral_of(bra, bra_E, f, potential + g * tuples);
            for (int q = 0; q < columns; ++q) {
                REAL* sum = acc + ((INDEX)q * bra_count + f) * ket_count + g0 + g;
                *sum = vfma(coefficient[q], value, *sum);
            }
        }
        __syncthreads();
    }
}

// Monomials of the ket -> its functions, for every monomial of the bra.
FN void to_functions(const Functions& ket, int functions, int bra_count, int ket_count, const REAL* sums, REAL* half) {
    for (int i = threadIdx.x; i < bra_count * functions; i += blockDim.x) {
        const int m = i / functions, g = i - m * functions;
        REAL sum = 0;
        for (int e = ket.first[g]; e < ket.first[g + 1]; ++e)
            sum = vfma(ket.value[e], sums[(INDEX)m * ket_count + ket.monomial[e]], sum);
        half[i] = sum;
    }
    __syncthreads();
}

KERNEL(THREADS) ENTRY(PARAMETERS) {
    extern __shared__ REAL shared_memory[];
    const Side bra = {la, lb, tuples}, ket = {lc, ld, tuples};
    const int order = bra.order() + ket.order();
    REAL* buffer = shared_memory;
    REAL* R = buffer + 3 * room;
    REAL* bases = R + tuples_below(order + 1);
    REAL* bra_E = bases + CHUNK * (order + 4);
    REAL* ket_E = bra_E + bra.rows() * (bra.order() + 1);
    REAL* rest = ket_E + ket.rows() * (ket.order() + 1);
    const Functions ket_rows = {ket_start, ket_monomial, ket_value};
#if PER_INTEGRAL
    const Functions bra_rows = {bra_start, bra_monomial, bra_value};
    REAL* bra_H = rest;
    REAL* ket_H = bra_H + tuples_below(bra.order() + 1);
    REAL* sums = ket_H + tuples_below(ket.order() + 1);
    int* bra_tuple = (int*)(sums + blockDim.x);
    int* ket_tuple = bra_tuple + tuples_below(bra.order() + 1);
    const INDEX per_quartet = (INDEX)columns * bra_functions * ket_functions;
#else
    const int bra_tuples = tuples_below(bra.order() + 1), bra_count = bra.monomials(), ket_count = ket.monomials();
    REAL* potential = rest;
    REAL* acc = scratch_stride ? scratch + blockIdx.x * scratch_stride : potential + at_once * bra_tuples;
    REAL* half = acc + (INDEX)columns * bra_count * ket_count;
    const INDEX per_quartet = 1;
#endif
    for (INDEX item = blockIdx.x; item < (end - begin) * kets * per_quartet; item += gridDim.x) {
        const INDEX quartet = item / per_quartet, b = begin + quartet / kets, d = quartet % kets;
        const INDEX block = d / BLOCK, lane = d % BLOCK;
#if PER_INTEGRAL
        const int inside = (int)(item % per_quartet), g = inside % ket_functions;
        const int f = inside / ket_functions % bra_functions, q = inside / ket_functions / bra_functions;
        const bool bra_single = bra_start[f + 1] == bra_start[f] + 1, ket_single = ket_start[g + 1] == ket_start[g] + 1;
        const int bra_only = bra_single ? bra_monomial[bra_start[f]] : -1;
        const int ket_only = ket_single ? ket_monomial[ket_start[g]] : -1;
        REAL mine = 0;
#else
        const int bra_only = -1, ket_only = -1;
        for (int i = threadIdx.x; i < columns * bra_count * ket_count; i += blockDim.x) acc[i] = 0;
#endif
        for (INDEX k = bra_first[b]; k < bra_first[b + 1]; ++k) {
            const REAL* record = bra_record + k * bra_fields;
            make_rows(bra, {record + 4, 1, record[10]}, bra_only, bra_E);
            __syncthreads();
#if PER_INTEGRAL
            const REAL coefficient = bra_coefficient[k * columns + q];
            const int bra_size = expand(bra, bra_E, bra_rows, f, coefficient, false, bra_H, bra_tuple);
#endif
            for (INDEX c = ket_first[block]; c < ket_first[block + 1]; ++c) {
                const INDEX in_chunk = (c - ket_first[block]) % CHUNK;
                const REAL* other = ket_record + c * ket_fields * BLOCK + lane;
                if (in_chunk == 0) {
                    const INDEX left = ket_first[block + 1] - c;
                    make_bases(order, record, other, ket_fields, left < CHUNK ? left : CHUNK, boys_table, bases);
                }
                if (other[4 * BLOCK] == 0) {  // a ket with fewer primitives than its block
                    __syncthreads();
                    continue;
                }
                const Primitive primitive = {ket_fields > 5 ? other + 5 * BLOCK : nullptr, BLOCK, other[0] / 2};
                make_rows(ket, primitive, ket_only, ket_E);
                __syncthreads();
                make_R(order, bases + in_chunk * (order + 4), tuples, buffer, room, R);
#if PER_INTEGRAL
                const int ket_size = expand(ket, ket_E, ket_rows, g, REAL(1), true, ket_H, ket_tuple);
                __syncthreads();
                for (int i = threadIdx.x; i < bra_size * ket_size; i += blockDim.x) {
                    const int x = i / ket_size, y = i - x * ket_size;
                    const Tuple at = unpacked(bra_tuple[x] + ket_tuple[y]);
                    mine = vfma(bra_H[x] * ket_H[y], R[place(at.t, at.u, at.v)], mine);
                }
                __syncthreads();
#else
                add_quartet(bra, ket, bra_E, ket_E, R, at_once, potential, bra_coefficient + k * columns, columns, acc);
#endif
            }
        }
#if PER_INTEGRAL
        const REAL integral = block_sum(mine, sums);
        const BraRows row(rows + (b * columns + q) * bra_functions, bra_functions);
        if (threadIdx.x == 0 && row.written(f))
            out[row[f] * row_stride + cols[g * kets + d]] = integral;
        __syncthreads();
#else
        for (int q = 0; q < columns; ++q) {
            to_functions(ket_rows, ket_functions, bra_count, ket_count, acc + (INDEX)q * bra_count * ket_count, half);
            const BraRows row(rows + (b * columns + q) * bra_functions, bra_functions);
            for (int i = threadIdx.x; i < bra_functions * ket_functions; i += blockDim.x) {
                const int f = i / ket_functions, g = i - f * ket_functions;
                if (!row.written(f)) continue;
                REAL sum = 0;
                for (int e = bra_start[f]; e < bra_start[f + 1]; ++e)
                    sum = vfma(bra_value[e], half[(INDEX)bra_monomial[e] * ket_functions + g], sum);
                out[row[f] * row_stride + cols[g * kets + d]] = sum;
            }
            __syncthreads();
        }
#endif
    }
}
