// Values of all points of a range, panel after panel, as the other kernels would make them: rows of functions are filled
// up to a whole number of tiles with zeros.
extern "C" void ENTRY(PARAMETERS) {
    const INDEX rows = up(functions, ROWS);
    for (INDEX g = begin; g < end; g += PANEL, kept += VALUES * rows * PANEL) {
        clear_rows(kept, VALUES, rows, functions);
        panel_values(g, position, stride, list_shell, list_row, list_count, shell, centre, primitive, rows, kept);
    }
}
