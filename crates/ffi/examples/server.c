/* A small HTTP server that asks Suimon before it works on a request: one request a connection, half a second of work.
 * Build and run it as docs/embedding-c.md says. Usage: server PORT [SETTINGS]
 *
 * A request that waits holds no thread: its connection is put away, and goes on when suimon_server_next names it. */

#include "suimon.h"
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HEAD_MAX 65536
#define ANSWER_MAX 65536
#define WAITING_MAX 10000

struct job {
    int client;
    uint64_t request;
    char lines[512]; /* what Suimon says of the request: x-request-id, suimon-waiting, suimon-held, suimon-pause */
};

static suimon_server *gateway;

/* Connections of requests that wait, by request. */
static struct {
    uint64_t request;
    int client;
} waiting[WAITING_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void put_away(uint64_t request, int client) {
    size_t at = 0;
    while (at < WAITING_MAX && waiting[at].request) at++;
    if (at == WAITING_MAX) {
        suimon_server_leave(gateway, request);
        close(client);
        return;
    }
    waiting[at].request = request;
    waiting[at].client = client;
}

static int take_out(uint64_t request) {
    size_t at;
    int client = -1;
    pthread_mutex_lock(&lock);
    for (at = 0; at < WAITING_MAX && client < 0; at++) {
        if (waiting[at].request == request) {
            waiting[at].request = 0;
            client = waiting[at].client;
        }
    }
    pthread_mutex_unlock(&lock);
    return client;
}

static void send_all(int client, const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t sent = write(client, bytes, length);
        if (sent <= 0) return;
        bytes += sent;
        length -= (size_t)sent;
    }
}

/* The application: works on a request that was let in, and answers it. */
static void *work(void *given) {
    struct job *job = given;
    struct timespec half_a_second = {0, 500000000};
    static const char own[] = "content-type: text/plain\r\n";
    char changes[4096], head[8192], body[1024];
    suimon_buffer out = {(uint8_t *)changes, sizeof changes - 1, 0};
    char *line, *rest;
    int length;
    nanosleep(&half_a_second, NULL);
    length = snprintf(body, sizeof body, "Done.\n\n%s", job->lines);

    /* The head of the answer: ours, and what Suimon adds to it (cookies that keep a visitor in, for one). */
    if (suimon_server_answer(gateway, job->request, 200, (const uint8_t *)own, sizeof own - 1, &out) != SUIMON_OK)
        out.length = 0;
    changes[out.length] = 0;
    length = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\n%sconnection: close\r\ncontent-length: %d\r\n", own, length);
    for (line = changes; (rest = strstr(line, "\r\n")) != NULL; line = rest + 2) {
        /* '+' adds a line and '=' sets one; this server has none that would have to be taken out. */
        if (*line != '-' && (size_t)length < sizeof head)
            length += snprintf(head + length, sizeof head - (size_t)length, "%.*s\r\n", (int)(rest - line - 1), line + 1);
    }
    send_all(job->client, head, strlen(head));
    send_all(job->client, "\r\n", 2);
    send_all(job->client, body, strlen(body));
    close(job->client);

    /* Exactly once for each request that was let in, whatever has happened. */
    suimon_server_end(gateway, job->request);
    free(job);
    return NULL;
}

/* Does what a result says: works on the request, or sends the answer that it has instead. */
static void go_on(int32_t told, uint64_t request, int client, const char *text, size_t length) {
    if (told == SUIMON_OK) {
        struct job *job = malloc(sizeof *job);
        pthread_t thread;
        if (job != NULL) {
            job->client = client;
            job->request = request;
            snprintf(job->lines, sizeof job->lines, "%.*s", (int)length, text);
            if (pthread_create(&thread, NULL, work, job) == 0) {
                pthread_detach(thread);
                return;
            }
            free(job);
        }
        /* Nobody works on it, and its slot is to come back. */
        suimon_server_fail(gateway, request);
    }
    if (told == SUIMON_ANSWERED) send_all(client, text, length);
    close(client);
}

/* Goes on with requests that have waited. */
static void *listen_for_results(void *unused) {
    char *room = malloc(ANSWER_MAX);
    (void)unused;
    for (;;) {
        suimon_buffer out = {(uint8_t *)room, ANSWER_MAX, 0};
        uint64_t request;
        int32_t told = suimon_server_next(gateway, 1000, &request, &out);
        if (told == SUIMON_CLOSED) break;
        if (told == SUIMON_OK || told == SUIMON_ANSWERED) go_on(told, request, take_out(request), room, out.length);
    }
    free(room);
    return NULL;
}

/* Reads the head of a request, and asks. */
static void take_in(int client, const char *address) {
    static char head[HEAD_MAX + 1], room[ANSWER_MAX];
    suimon_buffer out = {(uint8_t *)room, sizeof room, 0};
    size_t length = 0;
    uint64_t request;
    int32_t told;
    head[0] = 0;
    while (!strstr(head, "\r\n\r\n") && length < HEAD_MAX) {
        ssize_t got = read(client, head + length, HEAD_MAX - length);
        if (got <= 0) {
            close(client);
            return;
        }
        length += (size_t)got;
        head[length] = 0;
    }
    /* The lock keeps the result from coming before the connection is put away. */
    pthread_mutex_lock(&lock);
    told = suimon_server_enter(gateway, (const uint8_t *)head, length, (const uint8_t *)address, strlen(address), 0,
                               &request, &out);
    if (told == SUIMON_WAITS) put_away(request, client);
    pthread_mutex_unlock(&lock);
    if (told == SUIMON_WAITS) return;
    if (told < 0) fprintf(stderr, "%.*s\n", (int)(out.length < sizeof room ? out.length : sizeof room), room);
    go_on(told, request, client, room, out.length);
}

static volatile sig_atomic_t is_over;

static void end(int signal) {
    (void)signal;
    is_over = 1;
}

int main(int count, char **words) {
    const char *settings = count > 2 ? words[2] : "";
    char why[4096];
    suimon_buffer error = {(uint8_t *)why, sizeof why - 1, 0};
    struct sockaddr_in at;
    struct sigaction on_end;
    socklen_t size = sizeof at;
    pthread_t listener;
    int yes = 1, door = socket(AF_INET, SOCK_STREAM, 0);
    if (count < 2) return 2;
    signal(SIGPIPE, SIG_IGN);
    memset(&on_end, 0, sizeof on_end);
    on_end.sa_handler = end;
    sigaction(SIGTERM, &on_end, NULL);
    sigaction(SIGINT, &on_end, NULL);

    gateway = suimon_server_open((const uint8_t *)settings, strlen(settings), &error);
    if (!gateway) {
        why[error.length < sizeof why ? error.length : sizeof why - 1] = 0;
        fprintf(stderr, "%s\n", why);
        return 2;
    }
    pthread_create(&listener, NULL, listen_for_results, NULL);

    memset(&at, 0, sizeof at);
    at.sin_family = AF_INET;
    at.sin_port = htons((uint16_t)atoi(words[1]));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(door, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(door, (struct sockaddr *)&at, sizeof at) || listen(door, 128) || getsockname(door, (struct sockaddr *)&at, &size)) {
        perror("cannot listen");
        return 1;
    }
    printf("http://127.0.0.1:%d/\n", ntohs(at.sin_port));
    fflush(stdout);
    while (!is_over) {
        struct sockaddr_in peer;
        char address[INET_ADDRSTRLEN];
        int client;
        size = sizeof peer;
        client = accept(door, (struct sockaddr *)&peer, &size);
        if (client < 0) continue;
        inet_ntop(AF_INET, &peer.sin_addr, address, sizeof address);
        take_in(client, address);
    }
    /* What is under way ends first. */
    suimon_server_close(gateway);
    pthread_join(listener, NULL);
    return 0;
}
