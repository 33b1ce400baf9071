// Parameters of a method.
struct Model {
    int pm6, gaussians, extras, mopac;  // PM6's form of the core repulsion, Gaussians of an element and of a pair, MOPAC's series
    double bohr, hartree;               // in Angstrom, in eV
};
