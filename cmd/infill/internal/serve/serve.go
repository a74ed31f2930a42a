// Package serve is infill serve and infill mcp.
package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/infill/serve"
)

type serveOptions struct {
	streams *terminal.Streams
	cli.ModelOptions
	token string

	Listen      string   `flag:"listen" value:"HOST:PORT" help:"HOST:PORT to listen at; port 0 takes a free one"`
	TokenFile   string   `flag:"token-file" value:"FILE" help:"FILE with the token that requests must bring, else INFILL_TOKEN in the environment"`
	NoAuth      bool     `flag:"no-auth" help:"let other machines ask without a token"`
	Certificate string   `flag:"tls-cert" value:"FILE" help:"FILE of the certificate for https"`
	Key         string   `flag:"tls-key" value:"FILE" help:"FILE of its key"`
	Origin      string   `flag:"allow-origin" value:"ORIGIN" help:"ORIGIN whose pages may read answers, such as https://example.org"`
	Also        []string `flag:"also" value:"NAME" help:"NAME of a further model to serve; several with commas"`
	Pipe        bool     `flag:"pipe" help:"listen nowhere: answer requests on standard input, a line each; limits hold where they are given"`
	limits      serve.Limits
}

// NewCmd makes infill serve.
func NewCmd(s *terminal.Streams) *cobra.Command {
	o := &serveOptions{streams: s, limits: serve.DefaultLimits(), Listen: "127.0.0.1:8080"}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Answer requests over HTTP, and show a page to play with",
		Args:  cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(cmd.Context()); err != nil {
				return err
			}
			if o.Pipe {
				for _, name := range strings.Fields("listen token-file no-auth tls-cert tls-key allow-origin") {
					if cmd.Flags().Changed(name) {
						return cli.Usagef("--%s: --pipe listens nowhere: leave one out", name)
					}
				}
				if err := lift(cmd.Flags()); err != nil {
					return err
				}
			}
			return run(cmd.Context(), o)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	cli.Bind(cmd, o)
	cli.Bind(cmd, &o.limits)
	o.ModelOptions.Register(cmd)
	return cmd
}

// lift takes away the limits that the command line does not set: whoever writes to a pipe
// started the program. How many requests run at once stays, for it bounds memory alone.
func lift(flags *pflag.FlagSet) (err error) {
	flags.VisitAll(func(f *pflag.Flag) {
		if !strings.HasPrefix(f.Name, "max-") || f.Changed || f.Name == "max-requests" {
			return
		}
		value := strconv.Itoa(1 << 40)
		if f.Value.Type() == "duration" {
			value = "1000000h"
		}
		err = errors.Join(err, f.Value.Set(value))
	})
	return err
}

// loopback reports whether an address is reached from this machine alone.
func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func (o *serveOptions) validate(ctx context.Context) error {
	if err := o.ModelOptions.Validate(); err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return cli.Usagef("--listen: %q is not HOST:PORT", o.Listen)
	}
	if (o.Certificate == "") != (o.Key == "") {
		return cli.Usagef("--tls-cert and --tls-key go together: give both or none")
	}
	o.token = o.streams.Getenv("INFILL_TOKEN")
	if o.TokenFile != "" {
		text, err := cli.ReadFile(ctx, o.TokenFile)
		if err != nil {
			return cli.Usagef("--token-file: %w", err)
		}
		if o.token = oneToken(string(text)); o.token == "" {
			return cli.Usagef("--token-file: %s holds no token: write one line of letters and digits", o.TokenFile)
		}
	}
	if o.token != "" && o.NoAuth {
		return cli.Usagef("a token is given, and --no-auth: take one of them")
	}
	if !loopback(host) && o.token == "" && !o.NoAuth {
		return &cli.UsageError{Err: fmt.Errorf("--listen %s: other machines could ask without a token", o.Listen),
			Hint: "set INFILL_TOKEN or --token-file, or say --no-auth"}
	}
	return cli.OptionError(o.limits.Check())
}

// oneToken is a line without the space around it, "" if there are several words.
func oneToken(text string) string {
	var token, more string
	if n, _ := fmt.Sscan(text, &token, &more); n != 1 {
		return ""
	}
	return token
}

// openTried opens a model and runs it once, so that the first request does not wait
// for it, and a broken one is refused now.
func openTried(ctx context.Context, o cli.ModelOptions, s *terminal.Streams, model string) (*infill.Filler, error) {
	o.Model = model
	f, err := o.Open(s)
	if err != nil {
		return nil, err
	}
	t, err := f.Template("a [MASK]")
	if err == nil {
		_, err = f.LogConditionals(ctx, t, nil)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// openAll opens the models.
func openAll(ctx context.Context, o *cli.ModelOptions, s *terminal.Streams,
	also []string) (opened map[string]*infill.Filler, name string, err error) {
	opened = map[string]*infill.Filler{}
	for i, wanted := range append([]string{o.Model}, also...) {
		f, err := openTried(ctx, *o, s, wanted)
		if err != nil {
			return nil, "", errors.Join(err, closeAll(opened))
		}
		if wanted = f.Model().Name; i == 0 {
			name = wanted
		}
		if opened[wanted] != nil {
			return nil, "", errors.Join(
				cli.Usagef("two models are called %s: serve one of them", wanted), f.Close(),
				closeAll(opened))
		}
		opened[wanted] = f
	}
	return opened, name, nil
}

func closeAll(opened map[string]*infill.Filler) (err error) {
	for _, f := range opened {
		err = errors.Join(err, f.Close())
	}
	return err
}

// run serves until it is stopped.
func run(ctx context.Context, o *serveOptions) (err error) {
	opened, name, err := openAll(ctx, &o.ModelOptions, o.streams, o.Also)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll(opened)) }()
	options := serve.Options{Models: opened, Default: name, Fill: infill.DefaultOptions(), Limits: o.limits,
		Token: o.token, Origin: o.Origin,
		Log: func(message string) { cli.Warn(o.streams, false, "%s", message) }}
	if o.Pipe {
		options.Token = "" // who writes to a pipe started the program
		server, err := serve.New(options)
		if err != nil {
			return err
		}
		return server.Pipe(ctx, o.streams.In, o.streams.Out)
	}
	listener, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return &cli.Failure{Err: fmt.Errorf("listen: %w", err), Hint: "another port: infill serve --listen 127.0.0.1:0"}
	}
	address := listener.Addr().String()
	host, _, _ := net.SplitHostPort(o.Listen)
	if loopback(host) {
		options.Hosts = []string{"localhost", "127.0.0.1", "::1", host}
	}
	handler, err := serve.New(options)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	server := handler.HTTPServer()
	scheme := "http"
	if o.Certificate != "" {
		scheme = "https"
		server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		// Read before the address is printed.
		if _, err := tls.LoadX509KeyPair(o.Certificate, o.Key); err != nil {
			return errors.Join(cli.Usagef("--tls-cert: %w", err), listener.Close())
		}
	}
	if !o.Quiet {
		fmt.Fprintf(o.streams.Err, "infill: %s answers at %s://%s\n", name, scheme, address)
	}
	ended := make(chan error, 1)
	go func() {
		if o.Certificate != "" {
			ended <- server.ServeTLS(listener, o.Certificate, o.Key)
		} else {
			ended <- server.Serve(listener)
		}
	}()
	select {
	case err := <-ended:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	// Who was let in gets an answer; a second signal ends the process at once.
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.limits.Wait+o.limits.Time+5*time.Second)
	defer cancel()
	if err := server.Shutdown(drain); err != nil {
		err = errors.Join(err, server.Close())
		return fmt.Errorf("running requests did not end in time and were cut off: %w; a shorter --max-time ends them",
			err)
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
