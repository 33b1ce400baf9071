// G of atoms `row_atom` with `column_atom`, several columns side by side; G has the rows of atom_begin..atom_end.
extern "C" void ENTRY(PARAMETERS) {
    for (INDEX item = begin; item < end; ++item) {
        const INDEX molecule = item / rows;
        const int a = row_atom[item % rows];
        double* G_mol = G + molecule * products * products - INDEX(first_product[atom_begin]) * products;
        const bool own = a >= atom_begin && a < atom_end;
        Pair x;
        load_row(a, record, &x);
        for (INDEX column = first_column(triangle, a, columns, column_atom); column < columns; column += LANES) {
            const int count = load_columns(column, columns, column_atom, a, R + molecule * atoms * 3, record, pair, elements, &x);
            Frame f;
            make_frame(x.ux, x.uy, x.uz, &f);
            VEC w[VALUES], W[NA2 * NB2];
            local_repulsion(x.R, x.a, x.b, false, w);
            for (int i = 0; i < NA2 * NB2; ++i) W[i] = vset(0);
            for (int t = 0; t < ENTRIES; ++t) W[entry_a[t] * NB2 + entry_b[t]] = w[entry_value[t]];
            for (int i = 0; i < NA2; ++i) rotate_products<NB, false>(f, W + i * NB2, 1);
            for (int k = 0; k < NB2; ++k) rotate_products<NA, false>(f, W + k, NB2);
            for (int lane = 0; lane < count; ++lane) {
                const int b = column_atom[column + lane];
                const INDEX p = first_product[a], q = first_product[b];
                if (own)
                    for (int i = 0; i < NA2; ++i)
                        for (int k = 0; k < NB2; ++k) G_mol[(p + i) * products + q + k] = W[i * NB2 + k][lane];
                if (b >= atom_begin && b < atom_end)
                    for (int k = 0; k < NB2; ++k)
                        for (int i = 0; i < NA2; ++i) G_mol[(q + k) * products + p + i] = W[i * NB2 + k][lane];
            }
        }
    }
}
