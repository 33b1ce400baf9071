// Forces of exact exchange on the CPU. Bras (kb| have a monomial k of the derivative of a function; with a vector of kets they
// give K'_kc += I D_bd and K'_kd += I D_bc, which stay in the cache and are contracted with D after the last bra: term i adds
// weight[i] sum_r K'_kr D_pr, with k = function[i] and p = parent[i], to element target[i] of the gradient.

// Add the integrals of one bra with the vector of kets to K'. NC, ND: numbers of functions of c and d, or 0 to take them
// from `v` at run time.
template <int NC, int ND>
static void digest_derivative(const VEC* integrals, ACC weight, INDEX na, INDEX nb, const ACC* Db, ACC* Ka, const Kets& v) {
    const INDEX nc = NC ? NC : v.nc, nd = ND ? ND : v.nd, width = nc + nd;
    for (INDEX i = 0; i < na; ++i) {
        ACC sum[NC ? NC + ND : 96];
        UNROLL
        for (INDEX f = 0; f < width; ++f) sum[f] = ACC{};
        for (INDEX j = 0; j < nb; ++j)
            UNROLL
            for (INDEX k = 0; k < nc; ++k)
                UNROLL
                for (INDEX l = 0; l < nd; ++l) {
                    const ACC I = __builtin_convertvector(*integrals++, ACC);
                    sum[k] += I * Db[j * width + nc + l];
                    sum[nc + l] += I * Db[j * width + k];
                }
        UNROLL
        for (INDEX f = 0; f < width; ++f) Ka[i * width + f] += sum[f] * weight;
    }
}

struct DigestDerivative {
    typedef void (*Function)(const VEC*, ACC, INDEX, INDEX, const ACC*, ACC*, const Kets&);
    template <int NC, int ND> static Function of() { return digest_derivative<NC, ND>; }
};

extern "C" void ENTRY(PARAMETERS) {
    const Densities& x = *(const Densities*)densities;
    const double largest = largest_density(x);
    for (INDEX chunk = begin; chunk < end; ++chunk) {
        INDEX found = 0;
        vectors_of_chunk(x, (const KetClass*)kets, (const BraClass*)bras, classes, chunk, chunks,
                         [&](Work& w, const KetClass& k, const BraClass* bra, INDEX count, INDEX first) {
            const Kets& v = w.kets;
            const DigestDerivative::Function digest = digest_for<DigestDerivative>(k.nc, k.nd);
            for (INDEX i = 0; i < count; ++i) {
                const INDEX columns = bra[i].columns, na = bra[i].na, nb = bra[i].nb;
                found += select_bras(x, bra[i], largest, first, w, [&](INDEX items) {
                    bra[i].kernel(bra[i].sides, bra[i].tables, w.list, items, w.integrals);
                    const VEC* integrals = (const VEC*)w.integrals;
                    for (INDEX item = 0; item < items; ++item)
                        for (INDEX q = 0; q < columns; ++q, integrals += na * nb * k.nc * k.nd) {
                            const int* ao = bra[i].ao + 2 * (w.list[2 * item] * columns + q);
                            for (INDEX s = 0; s < x.count; ++s)
                                digest(integrals, w.weights[item], na, nb, v.D + (s * x.nbf + ao[1]) * v.functions,
                                       v.K + (s * x.rows + ao[0]) * v.functions, v);
                        }
                });
            }
            for (INDEX i = 0; i < terms; ++i) {
                ACC sum = {};
                for (INDEX s = 0; s < x.count; ++s) {
                    const ACC* K = v.K + (s * x.rows + function[i]) * v.functions;
                    const ACC* D = v.D + (s * x.nbf + parent[i]) * v.functions;
                    for (INDEX f = 0; f < v.functions; ++f) sum += K[f] * D[f];
                }
                sums[target[i]] += weight[i] * acc_sum(sum);
            }
        });
        quartets[chunk] = found;
    }
}
