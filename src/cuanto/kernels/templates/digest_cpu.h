// J and K from quartets (ab|cd) on the CPU. For each vector of kets, one ket per lane, all significant bras are selected
// and the integrals with them are added to J and K. Integrals come from `direct_cpu.h`, which evaluates them, or from
// `stored_cpu.h`, which reads what `store_cpu.h` stored.
//
// Each quartet is used once. Its integral I has a factor 1/2 for each of a = b, c = d and ab = cd that holds, and adds
//     K_ac += I D_bd   K_ad += I D_bc   K_bc += I D_ad   K_bd += I D_ac      J_ab += 2 I D_cd   J_cd += 2 I D_ab
// The caller adds the transposes: the results are J + J^T and K + K^T.
//
// The rows of D for the functions of a vector of kets are gathered once and used for all bras; the columns of K are
// collected in the same layout and scattered at the end.

typedef double ACC __attribute__((vector_size(LANES * sizeof(double))));

static ACC acc_set(double x) { return x - (ACC){}; }
static ACC larger(ACC a, ACC b) { return a > b ? a : b; }
static double acc_sum(ACC x) {
    double s = 0;
    for (int i = 0; i < LANES; ++i) s += x[i];
    return s;
}

// A vector of kets: the pairs in its lanes, and the rows of D and columns of K of its functions.
struct Kets {
    INDEX nc, nd, functions;  // functions: nc + nd
    int c[LANES], d[LANES], pair[LANES];
    ACC bound, own;           // own: twice the largest |D| between c and d
    double largest_bound;
    ACC *D, *K;               // [density, row, function]
    ACC *D_cd, *J_cd;         // [matrix J, function c, function d]
    ACC* near;                // [segment]: the largest |D| between the functions of a segment and those of shell c or d
};

// Working memory of a thread.
struct Work {
    Kets kets;
    ACC* weights;     // [bra of the list]: 0 in lanes that are left out, 1/2 where ab = cd, otherwise 1
    int* list;        // [bra of the list]: its number, and the first ket of the vector
    REAL* integrals;
    INDEX room;       // integrals that fit
};

static void gather(const Densities& x, const KetClass& k, INDEX first, Kets& v) {
    v.nc = k.nc, v.nd = k.nd, v.functions = k.nc + k.nd;
    const INDEX n = x.nbf, row = v.functions * LANES;
    v.largest_bound = 0;
    for (int lane = 0; lane < LANES; ++lane) {
        const bool there = first + lane < k.kets;
        const INDEX ket = there ? first + lane : k.kets - 1;
        const int *ao = k.ao + 2 * ket, *segment = k.segment + 2 * ket;
        v.c[lane] = ao[0], v.d[lane] = ao[1], v.pair[lane] = k.pair[ket];
        v.bound[lane] = there ? k.bound[ket] : 0.0;
        v.largest_bound = v.bound[lane] > v.largest_bound ? v.bound[lane] : v.largest_bound;
        const double *near_c = x.largest + segment[0] * x.segments, *near_d = x.largest + segment[1] * x.segments;
        v.own[lane] = x.coulombs ? 2 * near_c[segment[1]] : 0.0;
        for (INDEX s = 0; s < x.segments; ++s) v.near[s][lane] = near_c[s] > near_d[s] ? near_c[s] : near_d[s];
        for (INDEX density = 0; density < x.count; ++density) {
            const double* D = x.D + density * n * n;
            for (INDEX f = 0; f < v.functions; ++f) {
                const double* source = D + (f < v.nc ? v.c[lane] + f : v.d[lane] + f - v.nc) * n;
                double* target = (double*)(v.D + density * n * v.functions + f) + lane;
                if (x.want_k) for (INDEX p = 0; p < n; ++p) target[p * row] = source[p];
            }
        }
        for (INDEX j = 0; j < x.coulombs; ++j)
            for (INDEX f = 0; f < v.nc; ++f)
                for (INDEX g = 0; g < v.nd; ++g)
                    v.D_cd[(j * v.nc + f) * v.nd + g][lane] = x.D_j[j * n * n + (v.d[lane] + g) * n + v.c[lane] + f];
    }
    for (INDEX i = 0; i < x.count * x.rows * v.functions; ++i) v.K[i] = ACC{};
    for (INDEX i = 0; i < x.coulombs * v.nc * v.nd; ++i) v.J_cd[i] = ACC{};
}

static void scatter(const Densities& x, const Kets& v, double* J, double* K) {
    const INDEX n = x.nbf, row = v.functions * LANES;
    for (int lane = 0; lane < LANES; ++lane) {
        for (INDEX density = 0; density < x.count; ++density)
            if (x.want_k)
                for (INDEX f = 0; f < v.functions; ++f) {
                    double* target = K + density * n * n + (f < v.nc ? v.c[lane] + f : v.d[lane] + f - v.nc) * n;
                    const double* source = (const double*)(v.K + density * n * v.functions + f) + lane;
                    for (INDEX p = 0; p < n; ++p) target[p] += source[p * row];
                }
        for (INDEX j = 0; j < x.coulombs; ++j)
            for (INDEX f = 0; f < v.nc; ++f)
                for (INDEX g = 0; g < v.nd; ++g)
                    J[j * n * n + (v.c[lane] + f) * n + v.d[lane] + g] += v.J_cd[(j * v.nc + f) * v.nd + g][lane];
    }
}

// Stands for the weight of stored integrals, which already contain it.
struct Included {};
FN ACC operator*(ACC x, Included) { return x; }

// Add the integrals of one bra with the vector of kets to K. NC, ND: numbers of functions of c and d, or 0 to take them
// from `v` at run time.
template <class WEIGHT, int NC, int ND>
static void digest_k(const VEC* integrals, WEIGHT weight, INDEX na, INDEX nb, INDEX a, INDEX b, INDEX density_row, const Kets& v) {
    const INDEX nc = NC ? NC : v.nc, nd = ND ? ND : v.nd, width = nc + nd;
    const ACC *Da = v.D + (density_row + a) * width, *Db = v.D + (density_row + b) * width;
    ACC *Ka = v.K + (density_row + a) * width, *Kb = v.K + (density_row + b) * width;
    enum { MOST = NC ? NC + ND : 96 };  // 2 x 45 functions at most, l = 8
    ACC D_a[MOST], K_a[MOST], K_b[MOST];  // of function i of a and function j of b
    for (INDEX i = 0; i < na; ++i) {
        UNROLL
        for (INDEX f = 0; f < width; ++f) D_a[f] = Da[i * width + f], K_a[f] = ACC{};
        for (INDEX j = 0; j < nb; ++j) {
            UNROLL
            for (INDEX f = 0; f < width; ++f) K_b[f] = Kb[j * width + f];
            UNROLL
            for (INDEX k = 0; k < nc; ++k)
                UNROLL
                for (INDEX l = 0; l < nd; ++l) {
                    const ACC I = __builtin_convertvector(*integrals++, ACC) * weight;
                    K_a[k] += I * Db[j * width + nc + l];
                    K_a[nc + l] += I * Db[j * width + k];
                    K_b[k] += I * D_a[nc + l];
                    K_b[nc + l] += I * D_a[k];
                }
            UNROLL
            for (INDEX f = 0; f < width; ++f) Kb[j * width + f] = K_b[f];
        }
        UNROLL
        for (INDEX f = 0; f < width; ++f) Ka[i * width + f] += K_a[f];
    }
}

// The same for one matrix J.
template <class WEIGHT, int NC, int ND>
static void digest_j(const VEC* integrals, WEIGHT weight, INDEX na, INDEX nb, INDEX a, INDEX b, INDEX n, const double* D, double* J,
                     const ACC* D_cd, ACC* J_cd, INDEX functions) {
    enum { HELD = NC ? NC * ND : 1 };  // part of J_cd that is in registers
    const INDEX cd = NC ? NC * ND : functions;
    ACC held[HELD];
    if (NC) {
        UNROLL
        for (INDEX kl = 0; kl < HELD; ++kl) held[kl] = J_cd[kl];
    }
    ACC* sum_cd = NC ? held : J_cd;
    for (INDEX i = 0; i < na; ++i)
        for (INDEX j = 0; j < nb; ++j) {
            const double D_ab = 2 * D[(b + j) * n + a + i];
            ACC sum = {};
            UNROLL
            for (INDEX kl = 0; kl < cd; ++kl) {
                const ACC I = __builtin_convertvector(*integrals++, ACC) * weight;
                sum += I * D_cd[kl];
                sum_cd[kl] += I * D_ab;
            }
            J[(a + i) * n + b + j] += 2 * acc_sum(sum);
        }
    if (NC) {
        UNROLL
        for (INDEX kl = 0; kl < HELD; ++kl) J_cd[kl] = held[kl];
    }
}

template <class WEIGHT>
struct Digest {
    void (*k)(const VEC*, WEIGHT, INDEX, INDEX, INDEX, INDEX, INDEX, const Kets&);
    void (*j)(const VEC*, WEIGHT, INDEX, INDEX, INDEX, INDEX, INDEX, const double*, double*, const ACC*, ACC*, INDEX);
    typedef Digest Function;
    template <int NC, int ND> static Digest of() { return {digest_k<WEIGHT, NC, ND>, digest_j<WEIGHT, NC, ND>}; }
};

// The function that is compiled for these numbers of functions c and d, or the one that takes them at run time.
template <class DIGEST>
static typename DIGEST::Function digest_for(INDEX nc, INDEX nd) {
    switch (10 * nc + nd) {
    case 11: return DIGEST::template of<1, 1>();
    case 31: return DIGEST::template of<3, 1>();
    case 33: return DIGEST::template of<3, 3>();
    case 51: return DIGEST::template of<5, 1>();
    case 53: return DIGEST::template of<5, 3>();
    case 55: return DIGEST::template of<5, 5>();
    case 61: return DIGEST::template of<6, 1>();
    case 63: return DIGEST::template of<6, 3>();
    case 66: return DIGEST::template of<6, 6>();
    default: return DIGEST::template of<0, 0>();
    }
}

// Add the integrals of one bra with the vector of kets to J and K of all densities; returns the integrals of the next bra.
template <class WEIGHT>
static const VEC* digest_bra(const Densities& x, const BraClass& bra, INDEX b, const VEC* integrals, WEIGHT weight,
                             const Digest<WEIGHT>& add, const Kets& v, double* J) {
    const INDEX n = x.nbf, cd = v.nc * v.nd;
    for (INDEX q = 0; q < bra.columns; ++q, integrals += bra.na * bra.nb * cd) {
        const int* ao = bra.ao + 2 * (b * bra.columns + q);
        for (INDEX density = 0; density < x.count; ++density)
            if (x.want_k) add.k(integrals, weight, bra.na, bra.nb, ao[0], ao[1], density * n, v);
        for (INDEX j = 0; j < x.coulombs; ++j)
            add.j(integrals, weight, bra.na, bra.nb, ao[0], ao[1], n, x.D_j + j * n * n, J + j * n * n, v.D_cd + j * cd,
                     v.J_cd + j * cd, cd);
    }
    return integrals;
}

// Select the bras of a class that are significant with the vector of kets at `first`, and call take(number of bras)
// whenever the list is full, and at the end; returns the number of quartets.
template <class TAKE>
static INDEX select_bras(const Densities& x, const BraClass& bra, double largest, INDEX first, Work& w, const TAKE& take) {
    const Kets& v = w.kets;
    const INDEX size = bra.columns * bra.na * bra.nb * v.nc * v.nd * LANES;
    const INDEX room = w.room / size ? w.room / size : 1;
    INDEX count = 0, quartets = 0;
    for (INDEX b = 0; b < bra.bras; ++b) {
        if (bra.bound[b] * v.largest_bound * largest < x.lower) break;
        const int* segment = bra.segment + 2 * b;
        const ACC near_a = v.near[segment[0]], near_b = v.near[segment[1]];
        ACC density = x.products ? near_a * near_b : larger(near_a, near_b);
        if (x.coulombs) density = larger(density, larger(v.own, acc_set(2 * x.largest[segment[0] * x.segments + segment[1]])));
        const ACC bound = bra.bound[b] * v.bound * density;
        ACC weight = {};
        INDEX alive = 0;
        for (int lane = 0; lane < LANES; ++lane) {
            const bool wanted = bound[lane] >= x.lower && bound[lane] < x.upper && (!bra.same || bra.pair[b] >= v.pair[lane]);
            weight[lane] = !wanted ? 0.0 : bra.same && bra.pair[b] == v.pair[lane] ? 0.5 : 1.0;
            alive += wanted;
        }
        if (!alive) continue;
        quartets += alive * bra.columns;
        w.weights[count] = weight;
        w.list[2 * count] = (int)b, w.list[2 * count + 1] = (int)first;
        if (++count == room) take(count), count = 0;
    }
    if (count) take(count);
    return quartets;
}

enum { INTEGRALS = 49152 };  // integrals of a list of bras: they stay in the L2 cache

// Round up to whole cache lines.
static INDEX up(INDEX bytes) { return (bytes + 63) / 64 * 64; }

// Working memory for a class of kets with classes of bras.
static Work workspace(const Densities& x, const KetClass& k, const BraClass* bra, INDEX classes) {
    INDEX largest_item = 0;
    for (INDEX i = 0; i < classes; ++i) {
        const INDEX size = bra[i].columns * bra[i].na * bra[i].nb * k.nc * k.nd * LANES;
        largest_item = size > largest_item ? size : largest_item;
    }
    const INDEX numbers = largest_item > INTEGRALS ? largest_item : INTEGRALS;
    const INDEX items = numbers / LANES;
    const INDEX row = x.count * (k.nc + k.nd), block = x.coulombs * k.nc * k.nd;
    char* memory = (char*)digest_workspace.ask(((x.nbf + x.rows) * row + 2 * block + x.segments + items) * sizeof(ACC) +
                                               up(numbers * sizeof(REAL)) + up(2 * items * sizeof(int)));
    Work w;
    Kets& v = w.kets;
    v.D = (ACC*)memory, v.K = v.D + x.nbf * row, v.D_cd = v.K + x.rows * row, v.J_cd = v.D_cd + block, v.near = v.J_cd + block;
    w.weights = v.near + x.segments;
    w.integrals = (REAL*)(w.weights + items);
    w.list = (int*)((char*)w.integrals + up(numbers * sizeof(REAL)));
    w.room = numbers;
    return w;
}

static double largest_density(const Densities& x) {
    double largest = 0;
    for (INDEX i = 0; i < x.segments * x.segments; ++i) largest = x.largest[i] > largest ? x.largest[i] : largest;
    if (x.products) return largest * largest;
    return x.coulombs ? 2 * largest : largest;
}

// Call visit(work, kets, bras, classes of bras, first ket) for the vectors of kets of a chunk. Vectors of all classes are
// distributed over the chunks cyclically, so that every chunk has some of every class.
template <class VISIT>
static void vectors_of_chunk(const Densities& x, const KetClass* kets, const BraClass* bras, INDEX classes, INDEX chunk,
                             INDEX chunks, const VISIT& visit) {
    INDEX turn = chunk;
    for (INDEX y = 0; y < classes; ++y) {
        const INDEX vectors = (kets[y].kets + LANES - 1) / LANES;
        const BraClass* bra = bras + kets[y].first_bras;
        const INDEX count = kets[y].bra_classes;
        if (turn < vectors) {
            Work w = workspace(x, kets[y], bra, count);
            for (; turn < vectors; turn += chunks) {
                gather(x, kets[y], turn * LANES, w.kets);
                visit(w, kets[y], bra, count, turn * LANES);
            }
        }
        turn -= vectors;
    }
}

// J and K of a chunk are consecutive; a matrix that is not requested takes no space.
static double* sums_of_k(const Densities& x, double* sums) { return sums + x.coulombs * x.nbf * x.nbf; }
