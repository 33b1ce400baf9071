// The core Hamiltonian between atoms, and core repulsion added up by the atoms of the rows.
extern "C" void ENTRY(PARAMETERS) {
    for (INDEX item = begin; item < end; ++item) {
        const INDEX molecule = item / rows;
        const int a = row_atom[item % rows];
        double* H_mol = H + molecule * orbitals * orbitals;
        Pair x;
        load_row(a, record, &x);
        double energy = 0;
        for (INDEX column = first_column(triangle, a, columns, column_atom); column < columns; column += LANES) {
            const int count = load_columns(column, columns, column_atom, a, R + molecule * atoms * 3, record, pair, elements, &x);
            Frame f;
            make_frame(x.ux, x.uy, x.uz, &f);
            VEC h[NA * NB];
            resonance(x, f, mopac != 0, h);
            const VEC core = core_repulsion<VEC>(x.R, x.a, x.b, x.pair, Model{pm6, gaussians, mopac, bohr, hartree});
            for (int lane = 0; lane < count; ++lane) {
                const int b = column_atom[column + lane];
                energy += core[lane];
                for (int i = 0; i < NA; ++i)
                    for (int k = 0; k < NB; ++k) {
                        const INDEX m = first[a] + i, l = first[b] + k;
                        H_mol[m * orbitals + l] = H_mol[l * orbitals + m] = h[i * NB + k][lane];
                    }
            }
        }
        energies[molecule * atoms + a] += energy;
    }
}
