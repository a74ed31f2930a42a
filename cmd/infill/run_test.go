package main

import "testing"

func TestRun(t *testing.T)     { scripts(t, "run") }
func TestAugment(t *testing.T) { scripts(t, "augment") }
