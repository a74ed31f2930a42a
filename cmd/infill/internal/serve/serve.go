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
	also             []string
	listen           string
	token, tokenFile string
	noAuth           bool
	certificate, key string
	origin           string
	pipe             bool
	limits           serve.Limits
}

// NewCmd makes infill serve.
func NewCmd(s *terminal.Streams) *cobra.Command {
	o := &serveOptions{streams: s, limits: serve.DefaultLimits()}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Answer requests over HTTP, and show a page to play with",
		Args:  cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(cmd.Context()); err != nil {
				return err
			}
			if o.pipe {
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
	flags.StringVar(&o.listen, "listen", "127.0.0.1:8080", "`HOST:PORT` to listen on; port 0 takes a free one")
	flags.StringVar(&o.tokenFile, "token-file", "",
		"a `FILE` with the token that requests must bring; INFILL_TOKEN in the environment does the same")
	flags.BoolVar(&o.noAuth, "no-auth", false, "let other machines ask without a token")
	flags.StringVar(&o.certificate, "tls-cert", "", "certificate `FILE` for https")
	flags.StringVar(&o.key, "tls-key", "", "its key `FILE`")
	flags.StringVar(&o.origin, "allow-origin", "",
		"an `ORIGIN`, such as https://example.org, whose pages may read answers")
	flags.StringSliceVar(&o.also, "also", nil, "`NAME`s of more models to serve")
	flags.BoolVar(&o.pipe, "pipe", false,
		`listen nowhere: read requests from standard input, a line each, {"id": 1, "path": "/v1/fill", "body": {...}}, and answer on standard output; the limits below hold where they are given`)
	cli.Bind(flags, &o.limits)
	o.ModelOptions.Register(cmd)
	cli.Group(cmd, []string{cli.MatterFirst, "listen", "token-file", "tls-cert", "tls-key", "also",
		"max-requests", "max-memory", "model", "device"})
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
	host, _, err := net.SplitHostPort(o.listen)
	if err != nil {
		return cli.Usagef("--listen: %q is not HOST:PORT", o.listen)
	}
	if (o.certificate == "") != (o.key == "") {
		return cli.Usagef("--tls-cert and --tls-key go together: give both or none")
	}
	o.token = o.streams.Getenv("INFILL_TOKEN")
	if o.tokenFile != "" {
		text, err := cli.ReadFile(ctx, o.tokenFile)
		if err != nil {
			return cli.Usagef("--token-file: %w", err)
		}
		if o.token = oneToken(string(text)); o.token == "" {
			return cli.Usagef("--token-file: %s holds no token: write one line of letters and digits", o.tokenFile)
		}
	}
	if o.token != "" && o.noAuth {
		return cli.Usagef("a token is given, and --no-auth: take one of them")
	}
	if !loopback(host) && o.token == "" && !o.noAuth {
		return &cli.UsageError{Err: fmt.Errorf("--listen %s: other machines could ask without a token", o.listen),
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
	opened, name, err := openAll(ctx, &o.ModelOptions, o.streams, o.also)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll(opened)) }()
	options := serve.Options{Models: opened, Default: name, Fill: infill.DefaultOptions(), Limits: o.limits,
		Token: o.token, Origin: o.origin,
		Log: func(message string) { cli.Warn(o.streams, false, "%s", message) }}
	if o.pipe {
		options.Token = "" // who writes to a pipe started the program
		server, err := serve.New(options)
		if err != nil {
			return err
		}
		return server.Pipe(ctx, o.streams.In, o.streams.Out)
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return &cli.Failure{Err: fmt.Errorf("listen: %w", err), Hint: "another port: infill serve --listen 127.0.0.1:0"}
	}
	address := listener.Addr().String()
	host, _, _ := net.SplitHostPort(o.listen)
	if loopback(host) {
		options.Hosts = []string{"localhost", "127.0.0.1", "::1", host}
	}
	handler, err := serve.New(options)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	server := handler.HTTPServer()
	scheme := "http"
	if o.certificate != "" {
		scheme = "https"
		server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		// Read before the address is printed.
		if _, err := tls.LoadX509KeyPair(o.certificate, o.key); err != nil {
			return errors.Join(cli.Usagef("--tls-cert: %w", err), listener.Close())
		}
	}
	if !o.Quiet {
		fmt.Fprintf(o.streams.Err, "infill: %s answers at %s://%s\n", name, scheme, address)
	}
	ended := make(chan error, 1)
	go func() {
		if o.certificate != "" {
			ended <- server.ServeTLS(listener, o.certificate, o.key)
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
