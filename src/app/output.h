/* Standard output: what a verb printed is on it when the program ends with status 0. */
#pragma once

/* Calls first in main. Standard streams that the caller closed are opened, so that no file of ours takes
 * their place; from here on the program ends with STATUS_FILE and a sentence, whichever verb it runs, when
 * something could not be written to stdout and nothing else has failed. */
void output_begin(void);
