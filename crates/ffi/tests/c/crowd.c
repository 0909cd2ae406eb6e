/* A process of eight threads that works on requests as they come, carelessly: clients leave, answers fail to come,
 * buffers are too small, requests are ended twice. Usage: crowd SETTINGS REQUESTS
 * Prints what the gateway says of itself when all is over. Exit code 1: something was not as the header says. */

#include "suimon.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 8
#define WAITING_MAX 300

static suimon_server *server;
static uint64_t requests;

/* Those that wait, the oldest first; some of them are over. */
static uint64_t waiting[WAITING_MAX];
static size_t waiting_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define CHECK(holds)                                                                                                  \
    do {                                                                                                              \
        if (!(holds)) {                                                                                               \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #holds);                                               \
            exit(1);                                                                                                  \
        }                                                                                                             \
    } while (0)

static uint64_t roll(uint64_t *dice, uint64_t sides) {
    *dice = *dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*dice >> 33) % sides;
}

static void handle(int32_t told, uint64_t request, uint64_t *dice);

/* Ends a request, and goes on with the next one if there is one. */
static void go_on(uint64_t request, uint64_t *dice) {
    uint8_t *room = malloc(1 << 16);
    uint64_t next;
    suimon_buffer out = {room, roll(dice, 10) ? 1 << 16 : 8, 0};
    int32_t told = suimon_server_end_and_next(server, request, &next, &out);
    free(room);
    if (told != SUIMON_NOTHING) handle(told, next, dice);
}

/* Works on a request that was let in, and ends it. */
static void work(uint64_t request, uint64_t *dice) {
    static const uint32_t statuses[] = {200, 200, 200, 302, 404, 500};
    if (roll(dice, 4) == 0) CHECK(suimon_server_leave(server, request) == SUIMON_OK);
    if (roll(dice, 10) > 0) {
        uint8_t room[2048];
        suimon_buffer out = {room, sizeof room, 0};
        char lines[128];
        int length = snprintf(lines, sizeof lines, "set-cookie: JSESSIONID=%020" PRIu64 "; Path=/\r\n",
                              roll(dice, 1000));
        uint32_t status = statuses[roll(dice, 6)];
        CHECK(suimon_server_answer(server, request, status, (uint8_t *)lines, (size_t)length, &out) == SUIMON_OK);
    }
    /* The head may not be there, or says that no stream follows. */
    if (roll(dice, 10) == 0) CHECK(suimon_server_streams(server, request) == SUIMON_NOTHING);
    switch (roll(dice, 20)) {
    case 0: CHECK(suimon_server_fail(server, request) == SUIMON_OK); break;
    case 1: CHECK(suimon_server_end_without(server, request, roll(dice, 1000000000)) == SUIMON_OK); break;
    case 2:
    case 3:
    case 4:
    case 5: go_on(request, dice); break;
    default: CHECK(suimon_server_end(server, request) == SUIMON_OK);
    }
    switch (roll(dice, 40)) {
    case 0: CHECK(suimon_server_end(server, request) == SUIMON_UNKNOWN); break;
    case 1: CHECK(suimon_server_end_without(server, request, 0) == SUIMON_UNKNOWN); break;
    case 2: CHECK(suimon_server_fail(server, request) == SUIMON_UNKNOWN); break;
    case 3: CHECK(suimon_server_streams(server, request) == SUIMON_UNKNOWN); break;
    }
}

/* Does what a result of enter or next says. */
static void handle(int32_t told, uint64_t request, uint64_t *dice) {
    if (told == SUIMON_TOO_SMALL) {
        uint8_t *room = malloc(1 << 16);
        suimon_buffer out = {room, 1 << 16, 0};
        told = suimon_server_result(server, request, &out);
        free(room);
        /* It has left before it was told anything. */
        if (told == SUIMON_UNKNOWN) return;
    }
    if (told == SUIMON_OK)
        work(request, dice);
    else
        CHECK(told == SUIMON_ANSWERED);
}

static void *listen(void *unused) {
    uint64_t dice = 99, request;
    uint8_t *room = malloc(1 << 16);
    (void)unused;
    for (;;) {
        suimon_buffer out = {room, roll(&dice, 10) ? 1 << 16 : 8, 0};
        int32_t told = suimon_server_next(server, 20, &request, &out);
        if (told == SUIMON_CLOSED) break;
        if (told != SUIMON_NOTHING) handle(told, request, &dice);
    }
    free(room);
    return NULL;
}

static void *ask(void *which) {
    static const char *paths[] = {"/", "/items/7", "/hold/1", "/style.css"};
    uint64_t dice = (uint64_t)(uintptr_t)which, request, left;
    uint8_t *room = malloc(1 << 16);
    char head[256], address[32];
    for (left = requests / THREADS; left > 0; left--) {
        suimon_buffer out = {room, roll(&dice, 20) ? 1 << 16 : 8, 0};
        int length = snprintf(head, sizeof head, "GET %s HTTP/1.1\r\nhost: shop\r\ncookie: JSESSIONID=%020" PRIu64 "\r\n\r\n",
                              paths[roll(&dice, 4)], roll(&dice, 1000));
        int address_length = snprintf(address, sizeof address, "192.0.2.%" PRIu64, roll(&dice, 250));
        int32_t told = suimon_server_enter(server, (uint8_t *)head, (size_t)length, (uint8_t *)address,
                                           (size_t)address_length, 0, &request, &out);
        if (told != SUIMON_WAITS) {
            handle(told, request, &dice);
            continue;
        }
        pthread_mutex_lock(&lock);
        if (waiting_count == WAITING_MAX || (waiting_count > 0 && roll(&dice, 3) == 0)) {
            uint64_t oldest = waiting[0];
            memmove(waiting, waiting + 1, --waiting_count * sizeof waiting[0]);
            /* It may be over, or let in, by now. */
            told = suimon_server_leave(server, oldest);
            CHECK(told == SUIMON_OK || told == SUIMON_UNKNOWN);
        }
        waiting[waiting_count++] = request;
        pthread_mutex_unlock(&lock);
    }
    free(room);
    return NULL;
}

static char *state(void) {
    static uint8_t room[1 << 18];
    suimon_buffer out = {room, sizeof room - 1, 0};
    CHECK(suimon_server_state(server, &out) == SUIMON_OK);
    room[out.length] = 0;
    return (char *)room;
}

int main(int count, char **words) {
    uint8_t room[4096];
    suimon_buffer error = {room, sizeof room, 0};
    pthread_t listener, threads[THREADS];
    uintptr_t at;
    char *told;
    if (count != 3) return 2;
    requests = strtoull(words[2], NULL, 10);
    server = suimon_server_open((uint8_t *)words[1], strlen(words[1]), &error);
    if (!server) {
        fprintf(stderr, "%.*s\n", (int)error.length, (char *)room);
        return 2;
    }
    CHECK(pthread_create(&listener, NULL, listen, NULL) == 0);
    for (at = 0; at < THREADS; at++) CHECK(pthread_create(&threads[at], NULL, ask, (void *)at) == 0);
    for (at = 0; at < THREADS; at++) pthread_join(threads[at], NULL);
    /* What still waits gets its turn, or is refused when its time is over. */
    do told = state();
    while (!strstr(told, "\"connections_open\":0,"));
    /* The last one may have ended while that was told. */
    told = state();
    suimon_server_close(server);
    pthread_join(listener, NULL);
    printf("%s\n", told);
    suimon_server_close(server);
    return 0;
}
