// J and K from integrals that are kept: what `store_cpu.h` wrote, in the same order. `head` and `value` are places in it,
// and are moved on.
extern "C" void ENTRY(PARAMETERS) {
    const Densities& x = *(const Densities*)densities;
    const KetClass& k = *(const KetClass*)kets;
    const BraClass* bra = (const BraClass*)bras;
    const int*& bra_number = *(const int**)head;
    const VEC*& integrals = *(const VEC**)value;
    Work w = workspace(x, k, bra, classes);
    const Kets& v = w.kets;
    const DigestK<Included>::Function add_k = DigestK<Included>::of(k.nc, k.nd);
    for (INDEX first = begin * LANES; first < k.kets; first += step * LANES) {
        gather(x, k, first, w.kets);
        for (INDEX i = 0; i < classes; ++i)
            for (INDEX count = *bra_number++; count > 0; --count)
                integrals = digest_bra(x, bra[i], *bra_number++, integrals, Included{}, add_k, v, J);
        scatter(x, v, J, K);
    }
}
