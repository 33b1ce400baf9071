// J and K from stored integrals, in the order in which `store_cpu.h` wrote them.
extern "C" void ENTRY(PARAMETERS) {
    const Densities& x = *(const Densities*)densities;
    for (INDEX chunk = begin; chunk < end; ++chunk) {
        const int* number = ((const Store*)stores)[chunk].head;
        const VEC* integrals = (const VEC*)((const Store*)stores)[chunk].value;
        vectors_of_chunk(x, (const KetClass*)kets, (const BraClass*)bras, classes, chunk, chunks,
                         [&](Work& w, const KetClass& k, const BraClass* bra, INDEX count, INDEX) {
            const Digest<Included> add = digest_for<Digest<Included>>(k.nc, k.nd);
            for (INDEX i = 0; i < count; ++i)
                for (INDEX left = *number++; left > 0; --left)
                    integrals = digest_bra(x, bra[i], *number++, integrals, Included{}, add, w.kets, sums);
            scatter(x, w.kets, sums, sums_of_k(x, sums));
        });
    }
}
