// Groups begin .. end.
extern "C" void ENTRY(PARAMETERS) {
    for (INDEX g = begin; g < end; ++g)
        list_rows[g] = near_atoms(centre + 3 * g, radius[g], atoms, atom, pair, list_atom + g * atoms,
                                  list_distance + g * atoms, list_count + g);
}
