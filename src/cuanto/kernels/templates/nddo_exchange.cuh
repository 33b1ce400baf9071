// F_AB and F_BA of a pair: blocks of its own.
extern "C" __global__ void __launch_bounds__(THREADS) ENTRY(PARAMETERS) {
    PAIR_OF_THREAD
    const double* G_mol = G + molecule * products * products - INDEX(first_product[atom_begin]) * products;
    const double* block = G_mol + INDEX(first_product[a]) * products + first_product[b];
    for (INDEX s = 0; s < spins; ++s) {
        const INDEX start = (molecule * spins + s) * orbitals * orbitals;
        double K[NA * NB];
        exchange_block(block, products, D + start + first[a] * orbitals + first[b], orbitals, factor, K);
        double* F_ab = F + start + first[a] * orbitals + first[b];
        double* F_ba = F + start + first[b] * orbitals + first[a];
        UNROLL for (int i = 0; i < NA; ++i) UNROLL for (int k = 0; k < NB; ++k) {
            F_ab[i * orbitals + k] += K[i * NB + k];
            F_ba[k * orbitals + i] += K[i * NB + k];
        }
    }
}
