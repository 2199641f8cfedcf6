/*
 * An AIMD controller for Longhaul's simulator: slow start, one packet a round trip, half the
 * window at a loss.
 *
 *     cc -O2 -I include -o aimd examples/control/aimd.c
 *     longhaul sim run --link transatlantic --control ./aimd
 */
#include <longhaul_control.h>

int main(void)
{
    struct lh_event event;
    double cwnd = 10;
    uint64_t ssthresh = LH_NONE;

    while (lh_next(&event)) {
        switch (event.kind) {
        case LH_ACK:
            if (event.phase == LH_RECOVERY || !(event.flags & LH_CWND_LIMITED))
                break;
            if (ssthresh == LH_NONE || cwnd < (double)ssthresh)
                cwnd += (double)event.newly_acked;
            else
                cwnd += (double)event.newly_acked / cwnd;
            break;
        case LH_CONGESTION:
        case LH_TIMEOUT:
            if (event.flags & LH_IS_NEW)
                ssthresh = cwnd > 4 ? (uint64_t)(cwnd / 2) : 2;
            if (event.kind == LH_TIMEOUT)
                cwnd = 1;
            break;
        case LH_RECOVERY_END:
            cwnd = (double)ssthresh;
            break;
        default:
            break;
        }
        lh_answer((uint64_t)cwnd, LH_NONE, ssthresh);
    }
    return 0;
}
