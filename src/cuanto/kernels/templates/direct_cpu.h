// Add chunks of vectors of kets with all classes of bras to J and K; a kernel for lists computes the integrals.
extern "C" void ENTRY(PARAMETERS) {
    const Densities& x = *(const Densities*)densities;
    const double largest = largest_density(x);
    for (INDEX chunk = begin; chunk < end; ++chunk) {
        INDEX found = 0;
        vectors_of_chunk(x, (const KetClass*)kets, (const BraClass*)bras, classes, chunk, chunks,
                         [&](Work& w, const KetClass& k, const BraClass* bra, INDEX count, INDEX first) {
            const Digest<ACC> add = digest_for<Digest<ACC>>(k.nc, k.nd);
            for (INDEX i = 0; i < count; ++i)
                found += select_bras(x, bra[i], largest, first, w, [&](INDEX items) {
                    bra[i].kernel(bra[i].sides, bra[i].tables, w.list, items, w.integrals);
                    const VEC* integrals = (const VEC*)w.integrals;
                    for (INDEX item = 0; item < items; ++item)
                        integrals = digest_bra(x, bra[i], w.list[2 * item], integrals, w.weights[item], add, w.kets, sums);
                });
            scatter(x, w.kets, sums, sums_of_k(x, sums));
        });
        quartets[chunk] = found;
    }
}
