/* A controller with a window of 20 packets that misbehaves: misbehave MODE [EVENT [FILE]]. */
#include <longhaul_control.h>

#include <signal.h>
#include <sys/prctl.h>

static uint64_t count;

/* Answers whatever is asked, `before` times. */
static void behave(uint64_t before)
{
    struct lh_event event;
    while (lh_next(&event)) {
        if (count++ == before)
            return;
        lh_answer(20, LH_NONE, 20);
    }
    exit(0);
}

static void sleep_for_ever(void)
{
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "behave";
    uint64_t before = argc > 2 ? strtoull(argv[2], NULL, 10) : UINT64_MAX;
    struct lh_reply reply = {0, 20, 0, 0, 2, 2, 0, 0};

    if (strcmp(mode, "fork") == 0) {
        pid_t child = fork();
        if (child == 0) {
            signal(SIGTERM, SIG_IGN);
            sleep_for_ever();
        }
        FILE *file = fopen(argv[3], "w");
        fprintf(file, "%d", (int)child);
        fclose(file);
    }
    if (strcmp(mode, "version") == 0) {
        struct lh_event event;
        lh_next(&event);
        lh_page_->program_version = 2;
        lh_answer(20, LH_NONE, 20);
        sleep_for_ever();
    }
    if (strcmp(mode, "ignore-stop") == 0) {
        signal(SIGTERM, SIG_IGN);
        struct lh_event event;
        for (;;) {
            lh_next(&event);
            lh_answer(20, LH_NONE, 20);
        }
    }
    if (strcmp(mode, "truncate") == 0)
        before = ftruncate(atoi(getenv(LH_VARIABLE)), 0) == 0 ? 0 : UINT64_MAX;
    if (strcmp(mode, "close") == 0) {
        behave(before);
        for (int number = 0; number < 16; number++)
            close(number);
        lh_answer(20, LH_NONE, 20);
        behave(UINT64_MAX);
    }
    if (strcmp(mode, "chatter") == 0) {
        struct lh_event event;
        while (lh_next(&event)) {
            for (int line = 0; line < 200; line++)
                printf("%d: the window is still 20 packets\n", line);
            fflush(stdout);
            lh_answer(20, LH_NONE, 20);
        }
        return 0;
    }
    behave(before);
    if (strcmp(mode, "crash") == 0) {
        fputs("about to crash\n", stderr);
        /* Without a core file. */
        prctl(PR_SET_DUMPABLE, 0);
        abort();
    }
    if (strcmp(mode, "exit") == 0)
        return 0;
    if (strcmp(mode, "hang") == 0)
        sleep_for_ever();
    if (strcmp(mode, "unmap") == 0) {
        munmap(lh_page_, sizeof *lh_page_);
        sleep_for_ever();
    }
    if (strcmp(mode, "zero") == 0)
        reply.cwnd = 0;
    if (strcmp(mode, "absurd") == 0)
        reply.cwnd = (UINT64_C(1) << 40) + 1;
    if (strcmp(mode, "garbage") == 0)
        memset(&reply, 0xa5, sizeof reply);
    lh_answer_with(&reply);
    if (strcmp(mode, "twice") == 0)
        lh_answer_with(&reply);
    sleep_for_ever();
}
