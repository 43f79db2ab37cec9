#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <stdio.h>
int main(){
printf("PERF_COUNT_SW_CPU_CLOCK %llx\n",(unsigned long long)(PERF_COUNT_SW_CPU_CLOCK));
printf("PERF_COUNT_SW_TASK_CLOCK %llx\n",(unsigned long long)(PERF_COUNT_SW_TASK_CLOCK));
printf("PERF_COUNT_SW_PAGE_FAULTS %llx\n",(unsigned long long)(PERF_COUNT_SW_PAGE_FAULTS));
printf("PERF_COUNT_SW_CONTEXT_SWITCHES %llx\n",(unsigned long long)(PERF_COUNT_SW_CONTEXT_SWITCHES));
printf("PERF_COUNT_SW_CPU_MIGRATIONS %llx\n",(unsigned long long)(PERF_COUNT_SW_CPU_MIGRATIONS));
printf("PERF_COUNT_SW_PAGE_FAULTS_MIN %llx\n",(unsigned long long)(PERF_COUNT_SW_PAGE_FAULTS_MIN));
printf("PERF_COUNT_SW_PAGE_FAULTS_MAJ %llx\n",(unsigned long long)(PERF_COUNT_SW_PAGE_FAULTS_MAJ));
printf("PERF_COUNT_SW_ALIGNMENT_FAULTS %llx\n",(unsigned long long)(PERF_COUNT_SW_ALIGNMENT_FAULTS));
printf("PERF_COUNT_SW_EMULATION_FAULTS %llx\n",(unsigned long long)(PERF_COUNT_SW_EMULATION_FAULTS));
printf("PERF_COUNT_SW_DUMMY %llx\n",(unsigned long long)(PERF_COUNT_SW_DUMMY));
printf("PERF_COUNT_SW_BPF_OUTPUT %llx\n",(unsigned long long)(PERF_COUNT_SW_BPF_OUTPUT));
printf("PERF_COUNT_SW_CGROUP_SWITCHES %llx\n",(unsigned long long)(PERF_COUNT_SW_CGROUP_SWITCHES));
}
