// A thread for each group.
extern "C" __global__ void __launch_bounds__(NEAR_THREADS) ENTRY(PARAMETERS) {
    const INDEX g = (INDEX)blockIdx.x * NEAR_THREADS + threadIdx.x;
    if (g >= groups) return;
    list_rows[g] = near_atoms(centre + 3 * g, radius[g], atoms, atom, pair, list_atom + g * atoms,
                              list_distance + g * atoms, list_count + g);
}
