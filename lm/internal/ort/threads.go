package ort

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
)

// usable is how many threads this process can keep busy: the processors that its affinity allows, or fewer where its
// control group gives it less time than that. Go itself takes two for any quota below two processors.
func usable() int { return within(quota(os.DirFS("/")), runtime.GOMAXPROCS(0)) }

// within is a number of threads that a quota, which may be infinite, keeps busy.
func within(quota float64, threads int) int {
	return max(1, int(math.Ceil(min(quota, float64(threads)))))
}

// quota is the processor time, in processors, that a process may use by its control groups and those above them, in
// either version of cgroups; infinite where there is no limit, and on systems without them.
func quota(root fs.FS) float64 {
	least := math.Inf(1)
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return least
	}
	for line := range strings.Lines(string(groups)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		mount := "sys/fs/cgroup"
		if fields[1] != "" {
			if !strings.Contains(","+fields[1]+",", ",cpu,") {
				continue
			}
			mount = path.Join(mount, fields[1])
		}
		// In a container the path may be that of the machine, and the folder is the mount itself.
		for folder := path.Join(mount, fields[2]); strings.HasPrefix(folder, mount); folder = path.Dir(folder) {
			limit := numbers(root, path.Join(folder, "cpu.max"))
			if limit == nil {
				limit = append(numbers(root, path.Join(folder, "cpu.cfs_quota_us")),
					numbers(root, path.Join(folder, "cpu.cfs_period_us"))...)
			}
			if len(limit) == 2 && limit[0] > 0 && limit[1] > 0 {
				least = min(least, limit[0]/limit[1])
			}
		}
	}
	return least
}

// numbers are those of a file; none where one of its words is no number, as "max".
func numbers(root fs.FS, name string) (list []float64) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return nil
	}
	for _, word := range strings.Fields(string(text)) {
		x, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return nil
		}
		list = append(list, x)
	}
	return list
}
