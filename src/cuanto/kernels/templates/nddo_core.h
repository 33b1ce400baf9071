// The core Hamiltonian between atoms, and core repulsion added up by the atoms of the rows.
KERNEL(THREADS) ENTRY(PARAMETERS) {
    FOR_PAIRS(at) {
        Pair x;
        load_pair(at, atoms, R, record, pair, elements, &x);
        Frame f;
        make_frame(x.ux, x.uy, x.uz, &f);
        VEC h[NA * NB];
        resonance(x, f, mopac != 0, h);
        const VEC core = core_repulsion<VEC>(x.R, x.a, x.b, x.pair, Model{pm6, gaussians, extras, mopac, bohr, hartree});
        double* H_mol = H + at.molecule * orbitals * orbitals;
        FOR_LANES(at.count) {
            ADD(SUMS(energies) + at.molecule * atoms + at.a, LANE(core));
            UNROLL_REGISTERS for (int i = 0; i < NA; ++i) UNROLL_REGISTERS for (int k = 0; k < NB; ++k) {
                const INDEX m = first[at.a] + i, l = first[at.b[lane]] + k;
                H_mol[m * orbitals + l] = H_mol[l * orbitals + m] = LANE(h[i * NB + k]);
            }
        }
    }
}
