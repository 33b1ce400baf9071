// F_AB and F_BA of every pair, which no other pair changes.
KERNEL(THREADS) ENTRY(PARAMETERS) {
    FOR_PAIRS(at) {
        FOR_LANES(at.count) {
            const int a = at.a, b = at.b[lane];
            const INDEX block = (INDEX(first_product[a]) - first_product[atom_begin]) * products + first_product[b];
            const INDEX ab = first[a] * orbitals + first[b], ba = first[b] * orbitals + first[a];
            for (INDEX s = 0; s < spins; ++s) {
                const INDEX start = (at.molecule * spins + s) * orbitals * orbitals;
                double K[NA * NB];
                exchange_block(G + at.molecule * products * products + block, products, D + start + ab, orbitals, factor, K);
                UNROLL_REGISTERS for (int i = 0; i < NA; ++i) UNROLL_REGISTERS for (int k = 0; k < NB; ++k) {
                    F[start + ab + i * orbitals + k] += K[i * NB + k];
                    F[start + ba + k * orbitals + i] += K[i * NB + k];
                }
            }
        }
    }
}
