/* Prints the constants of the header, places and sizes in words of 64 bits. */
#include <longhaul_control.h>

#include <stddef.h>

int main(void)
{
    const size_t bytes[] = {
        offsetof(struct lh_page, program_version), offsetof(struct lh_page, event_bell),
        offsetof(struct lh_page, event),           offsetof(struct lh_page, reply_bell),
        offsetof(struct lh_page, reply),           sizeof(struct lh_event),
        sizeof(struct lh_reply),                   sizeof(struct lh_page),
    };
    printf("%llu %llu\n", (unsigned long long)LH_MAGIC, (unsigned long long)LH_VERSION);
    for (size_t index = 0; index < sizeof bytes / sizeof *bytes; index++)
        printf("%zu\n", bytes[index] / 8);
    return 0;
}
