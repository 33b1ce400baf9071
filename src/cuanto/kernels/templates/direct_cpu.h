// Vectors of kets number `begin`, `begin` + `step`, ... of a class with all classes of bras, their integrals by a kernel
// for lists; J and K are added to.
extern "C" void ENTRY(PARAMETERS) {
    const Densities& x = *(const Densities*)densities;
    const KetClass& k = *(const KetClass*)kets;
    const BraClass* bra = (const BraClass*)bras;
    Work w = workspace(x, k, bra, classes);
    const Kets& v = w.kets;
    const DigestK<ACC>::Function add_k = DigestK<ACC>::of(k.nc, k.nd);
    const double largest = largest_density(x);
    for (INDEX first = begin * LANES; first < k.kets; first += step * LANES) {
        gather(x, k, first, w.kets);
        for (INDEX i = 0; i < classes; ++i)
            *quartets += all_bras(x, bra[i], largest, first, w, [&](INDEX count) {
                bra[i].kernel(bra[i].sides, bra[i].tables, w.list, count, w.integrals);
                const VEC* integrals = (const VEC*)w.integrals;
                for (INDEX item = 0; item < count; ++item)
                    integrals = digest_bra(x, bra[i], w.list[2 * item], integrals, w.weights[item], add_k, v, J);
            });
        scatter(x, v, J, K);
    }
}
