//! What `callbook --help` says. clap knows no groups of commands, so the list is written here; a test keeps it equal to
//! the commands.

/// The words above the usage in `--help`.
pub const LONG: &str = "A book of everything that agents and platform teams can call.

Start everything in one process, with starter rows:
  callbook up --sample

From a question to a receipt in four calls:
  callbook ask weather at a place                   which row answers?
  callbook contract WEATHER_NOW                     what does it take?
  callbook invoke WEATHER_NOW '37.77|-122.42'       run it
  callbook receipt inv_…                            what happened?

Add a capability in one write:
  echo '{\"key\":\"REPO\",\"type\":\"http\",\"target\":\"GET https://api.github.com/repos/$1/$2\",
         \"content\":\"# WHAT: A GitHub repository\\n# EX: rust-lang|rust\"}' | callbook put -

Where and who: --url or CALLBOOK_URL, and CALLBOOK_KEY; on the machine of the server the owner's key is found by itself.
Exit codes: 0 done, 1 refused or failed, 2 cannot be asked so, 3 nobody answers.";

/// The whole page.
pub const TEMPLATE: &str = "\
{about-with-newline}
{usage-heading} {usage}

\u{1b}[1m\u{1b}[4mCall:\u{1b}[0m
  \u{1b}[1mask\u{1b}[0m        Find the row that answers a question
  \u{1b}[1mcontract\u{1b}[0m   Read what a row takes, gives and may do
  \u{1b}[1minvoke\u{1b}[0m     Run a row
  \u{1b}[1mreceipt\u{1b}[0m    Show what happened in an invocation

\u{1b}[1m\u{1b}[4mLook around:\u{1b}[0m
  \u{1b}[1mmap\u{1b}[0m        Show the book in numbers, or one shelf of it
  \u{1b}[1mlist\u{1b}[0m       List the rows
  \u{1b}[1mdescribe\u{1b}[0m   Show rows as TypeScript
  \u{1b}[1mstamp\u{1b}[0m      Show the digest of all rows
  \u{1b}[1mstatus\u{1b}[0m     Show whether the gateway answers, and to whom

\u{1b}[1m\u{1b}[4mWrite the book:\u{1b}[0m
  \u{1b}[1mput\u{1b}[0m        Create or replace a row from JSON
  \u{1b}[1mpatch\u{1b}[0m      Change columns of a row
  \u{1b}[1mdelete\u{1b}[0m     Remove a row; its history and receipts stay
  \u{1b}[1mrestore\u{1b}[0m    Write an earlier version of a row again
  \u{1b}[1mhistory\u{1b}[0m    List the versions of a row
  \u{1b}[1mimport\u{1b}[0m     Write many rows from NDJSON
  \u{1b}[1mexport\u{1b}[0m     Write the rows to standard output as NDJSON

\u{1b}[1m\u{1b}[4mOperate:\u{1b}[0m
  \u{1b}[1mkey\u{1b}[0m        Let callers in and shut them out
  \u{1b}[1mtoken\u{1b}[0m      Hand out, narrow and take back rights to run rows
  \u{1b}[1mapprovals\u{1b}[0m  Decide on calls that wait for a person
  \u{1b}[1mwatch\u{1b}[0m      Say which calls of sensitive rows go on, wait or are refused
  \u{1b}[1mrecommend\u{1b}[0m  Set standing answers to kinds of questions
  \u{1b}[1mbreaker\u{1b}[0m    Let calls out again whose credential was refused too often
  \u{1b}[1meval\u{1b}[0m       Measure how well questions find their rows

\u{1b}[1m\u{1b}[4mRun Callbook:\u{1b}[0m
  \u{1b}[1mmcp\u{1b}[0m        Speak MCP over standard input and output, for hosts that start local servers
  \u{1b}[1mup\u{1b}[0m         Run every role in one process, on a private Postgres unless DATABASE_URL is set
  \u{1b}[1mserve\u{1b}[0m      Run the named roles in this process
  \u{1b}[1mdev-db\u{1b}[0m     Run a command with DATABASE_URL set to a Postgres that is thrown away afterwards

\u{1b}[1m\u{1b}[4mOptions:\u{1b}[0m
{options}

`callbook COMMAND --help` says more, with examples.";

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::super::Cli;
    use super::*;

    #[test]
    fn the_page_lists_every_command_with_its_line_and_no_other() {
        let cli = Cli::command();
        let plain = TEMPLATE.replace("\u{1b}[1m", "").replace("\u{1b}[0m", "");
        let listed: Vec<&str> = plain.lines().filter(|line| line.starts_with("  ")).collect();
        let expected: Vec<String> = cli
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(|command| format!("  {:<9}  {}", command.get_name(), command.get_about().unwrap_or_default()))
            .collect();
        assert_eq!(listed, expected);
    }

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn no_page_of_help_shows_a_key() {
        let mut cli = Cli::command();
        cli.build();
        for command in cli.get_subcommands_mut() {
            let page = command.render_long_help().to_string();
            assert!(!page.contains("CALLBOOK_KEY="), "{page}");
        }
    }
}
