/* Plays files of a recording to a gate, and holds it to every mark. Usage: replay FILE... (in order, of one run)
 * Prints a line for each file: its events, its marks, and the trace after the last. */

#include "suimon.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static uint8_t event[1 << 18];
static char text[1 << 16];

static void fail(const char *what, const suimon_buffer *why) {
    fprintf(stderr, "%s: %.*s\n", what, (int)(why->length < why->capacity ? why->length : why->capacity),
            (const char *)why->data);
    exit(1);
}

static uint8_t *whole(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    uint8_t *bytes;
    if (!file || fseek(file, 0, SEEK_END)) exit(2);
    *length = (size_t)ftell(file);
    rewind(file);
    bytes = malloc(*length);
    if (!bytes || fread(bytes, 1, *length, file) != *length) exit(2);
    fclose(file);
    return bytes;
}

/* Polls until there is nothing more, and returns how many requests were started. */
static uint64_t settle(suimon_gate *gate) {
    suimon_output output;
    uint64_t started = 0;
    while (suimon_gate_poll(gate, &output) == SUIMON_OK) started += output.what == SUIMON_START;
    return started;
}

static void play(const char *path) {
    suimon_buffer why = {(uint8_t *)text, sizeof text, 0}, out = {event, sizeof event, 0};
    size_t length;
    uint8_t *bytes = whole(path, &length);
    suimon_recording *recording = suimon_recording_open(bytes, length, &why);
    suimon_gate *gate;
    suimon_recording_part part;
    uint64_t events = 0, marks = 0, started = 0, trace = 0, answers = 0;
    int32_t told;
    if (!recording) fail(path, &why);
    gate = suimon_gate_restore(bytes, length, &why);
    if (!gate) fail(path, &why);
    free(bytes);
    while ((told = suimon_recording_next(recording, &part, &out)) == SUIMON_OK) {
        if (part.what == SUIMON_EVENT) {
            if (suimon_gate_apply(gate, part.at, event, out.length) != SUIMON_OK) {
                fprintf(stderr, "%s: event %" PRIu64 " is not taken\n", path, events);
                exit(1);
            }
            started += settle(gate);
            events++;
        } else if (part.what == SUIMON_MARK) {
            suimon_gate_trace(gate, &trace);
            suimon_gate_answers(gate, &answers);
            if (trace != part.trace || answers != part.answers) {
                fprintf(stderr, "%s: other decisions before event %" PRIu64 "\n", path, events);
                exit(1);
            }
            marks++;
        }
    }
    if (told != SUIMON_NOTHING) fail(path, &out);
    printf("%" PRIu64 " events, %" PRIu64 " marks, %" PRIu64 " started, trace %016" PRIx64 "\n", events, marks,
           started, trace);
    suimon_gate_close(gate);
    suimon_recording_close(recording);
}

int main(int count, char **paths) {
    int at;
    for (at = 1; at < count; at++) play(paths[at]);
    return 0;
}
