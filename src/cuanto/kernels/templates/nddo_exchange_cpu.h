// F_AB and F_BA of every pair: blocks of its own.
extern "C" void ENTRY(PARAMETERS) {
    for (INDEX item = begin; item < end; ++item) {
        const INDEX molecule = item / rows;
        const int a = row_atom[item % rows];
        const double* G_mol = G + molecule * products * products - INDEX(first_product[atom_begin]) * products;
        const double* rows_of_a = G_mol + INDEX(first_product[a]) * products;
        for (INDEX column = first_column(triangle, a, columns, column_atom); column < columns; ++column) {
            const int b = column_atom[column];
            for (INDEX s = 0; s < spins; ++s) {
                const INDEX start = (molecule * spins + s) * orbitals * orbitals;
                double K[NA * NB];
                const double* D_ab = D + start + first[a] * orbitals + first[b];
                exchange_block(rows_of_a + first_product[b], products, D_ab, orbitals, factor, K);
                double* F_ab = F + start + first[a] * orbitals + first[b];
                double* F_ba = F + start + first[b] * orbitals + first[a];
                for (int i = 0; i < NA; ++i)
                    for (int k = 0; k < NB; ++k) {
                        F_ab[i * orbitals + k] += K[i * NB + k];
                        F_ba[k * orbitals + i] += K[i * NB + k];
                    }
            }
        }
    }
}
