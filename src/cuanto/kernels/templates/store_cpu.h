// Stores the integrals of the quartets that are significant for any density with elements up to one, in the order in which
// `stored_cpu.h` reads them: for every vector of kets and class of bras a count and the numbers of the bras in `head`,
// and [bra, column, function a, b, c, d, lane] in `value`, with the weights included. If `head` is null they are only counted.
extern "C" void ENTRY(PARAMETERS) {
    const Densities& x = *(const Densities*)densities;
    const double largest = largest_density(x);
    for (INDEX chunk = begin; chunk < end; ++chunk) {
        Store s = ((const Store*)stores)[chunk];
        vectors_of_chunk(x, (const KetClass*)kets, (const BraClass*)bras, classes, chunk, chunks,
                         [&](Work& w, const KetClass& k, const BraClass* bra, INDEX count, INDEX first) {
            for (INDEX i = 0; i < count && s.values <= s.limit; ++i) {
                const INDEX place = s.heads++, size = bra[i].columns * bra[i].na * bra[i].nb * k.nc * k.nd;
                s.quartets += select_bras(x, bra[i], largest, first, w, [&](INDEX items) {
                    if (s.head) {
                        VEC* integrals = (VEC*)(s.value + s.values);
                        bra[i].kernel(bra[i].sides, bra[i].tables, w.list, items, (REAL*)integrals);
                        for (INDEX item = 0; item < items; ++item) {
                            s.head[s.heads + item] = w.list[2 * item];
                            const VEC weight = __builtin_convertvector(w.weights[item], VEC);
                            for (INDEX e = 0; e < size; ++e) *integrals++ *= weight;
                        }
                    }
                    s.heads += items, s.values += items * size * LANES;
                });
                if (s.head) s.head[place] = (int)(s.heads - place - 1);
            }
        });
        ((Store*)stores)[chunk] = s;
    }
}
