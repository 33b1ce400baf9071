// Store the values of functions at the points of blocks of groups, panel after panel, in the layout of `panel_values`: rows
// of functions are padded with zeros to a whole number of tiles.
extern "C" void ENTRY(PARAMETERS) {
    for (INDEX t = block_task[begin]; t < block_task[end]; ++t) {
        const Task task = TASK_OF(t);
        const INDEX rows = up(task.functions, ROWS);
        REAL* place = task.kept;
        for (INDEX g = task.begin; g < task.end; g += PANEL, place += VALUES * rows * PANEL) {
            clear_rows(place, VALUES, rows, task.functions);
            panel_values(g, position, stride, task.list_shell, task.list_row, task.list_count, shell, centre, primitive,
                         rows, place);
        }
    }
}
