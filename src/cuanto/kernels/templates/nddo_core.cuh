// The core Hamiltonian between atoms, and core repulsion added up by the atoms of the rows.
extern "C" __global__ void __launch_bounds__(THREADS) ENTRY(PARAMETERS) {
    PAIR_OF_THREAD
    Pair x;
    load_pair(molecule, a, b, atoms, R, record, pair, elements, &x);
    Frame f;
    make_frame(x.ux, x.uy, x.uz, &f);
    VEC h[NA * NB];
    resonance(x, f, mopac != 0, h);
    double* H_mol = H + molecule * orbitals * orbitals;
    UNROLL for (int i = 0; i < NA; ++i) UNROLL for (int k = 0; k < NB; ++k) {
        const INDEX m = first[a] + i, l = first[b] + k;
        H_mol[m * orbitals + l] = H_mol[l * orbitals + m] = h[i * NB + k];
    }
    atomicAdd(energies + molecule * atoms + a, core_repulsion<VEC>(x.R, x.a, x.b, x.pair, Model{pm6, gaussians, mopac, bohr, hartree}));
}
